package outbox

import (
	"context"
	"strings"
	"unicode"
)

// maxTitle is the greatest number of characters in the title of an article, file or product.
const maxTitle = 300

// createArticle writes an article: a text with a title (ActivityStreams vocabulary §3.3).
type createArticle struct {
	Title string `json:"title" schema:"title"`
	post
}

func (p *createArticle) checkParams() error {
	if err := checkTitle(p.Title); err != nil {
		return err
	}
	return p.post.checkParams()
}

func (p *createArticle) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.post.findRecipients(ctx, f, x, note{kind: "Article", title: p.Title})
}

func checkTitle(title string) error {
	if strings.TrimSpace(title) == "" {
		return badParam("title", "title is missing")
	}
	if strings.ContainsFunc(title, unicode.IsControl) {
		return badParam("title", "title is one line of text")
	}
	return nil
}
