package outbox

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// listMentions returns Mention tags (ActivityStreams vocabulary §3.4) for the named actors.
func listMentions(named []*vocab.Actor) []any {
	var out []any
	for _, a := range named {
		m := vocab.Doc{"type": "Mention", "href": string(a.ID)}
		if a.PreferredUsername != "" {
			m["name"] = handleOf(a)
		}
		out = append(out, m)
	}
	return out
}

func setContent(d vocab.Doc, text string, href vocab.Href) {
	d["content"] = quoteLine(d) + vocab.TextToHTML(text, href)
	d["source"] = vocab.Doc{"content": text, "mediaType": "text/plain"}
}

// setLanguage writes the language of the content into the document. If language is empty, it
// removes the language from the document.
func setLanguage(d vocab.Doc, language string) {
	delete(d, "contentMap")
	if language != "" {
		d["contentMap"] = vocab.Doc{language: d["content"]}
	}
}

// languageOf returns the language of the content of a local document, or an empty text if the
// document has none.
func languageOf(d vocab.Doc) string {
	for language := range d.Sub("contentMap") {
		return language
	}
	return ""
}

func checkLanguage(tag string) error {
	if tag != "" && !vocab.IsLanguage(tag) {
		return badParam("language", "language is a tag such as en or pt-BR")
	}
	return nil
}

func setTitle(d vocab.Doc, title string) {
	if title != "" {
		d["name"] = title
	}
}

func setSummary(d vocab.Doc, text string) {
	delete(d, "summary")
	if text != "" {
		d["summary"] = text
	}
}

func setSensitive(d vocab.Doc, sensitive bool) {
	delete(d, "sensitive")
	if sensitive {
		d["sensitive"] = true
	}
}

// setTags writes two members. The member lwTags has the free tags. The member tag has the other
// tags, a Hashtag for each free tag that other servers accept as a hashtag, and a Hashtag for
// each hashtag in the text. The function page returns the address of a hashtag's page.
func setTags(d vocab.Doc, tags []string, others []any, page func(tag string) string) {
	delete(d, "tag")
	delete(d, "lwTags")
	var hashtags []string
	for _, t := range tags {
		if !strings.ContainsFunc(t, isOutsideHashtag) {
			hashtags = addTag(hashtags, t)
		}
	}
	for _, t := range listHashtags(d.Sub("source").Text("content")) {
		hashtags = addTag(hashtags, t)
	}
	for _, t := range hashtags[:min(len(hashtags), maxHashtags)] {
		others = append(others, vocab.Doc{"type": "Hashtag", "name": "#" + t, "href": page(t)})
	}
	if len(others) > 0 {
		d["tag"] = others
	}
	if len(tags) > 0 {
		free := make([]any, len(tags))
		for i, t := range tags {
			free[i] = t
		}
		d["lwTags"] = free
	}
}

func isOutsideHashtag(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '_'
}

func checkContent(text string) error {
	if strings.TrimSpace(text) == "" {
		return badParam("content", "content is missing")
	}
	if len(text) > maxContent {
		return badParam("content", "content has more than 65536 bytes")
	}
	if html := vocab.TextToHTML(text, func(vocab.Span) string { return "" }); len(html) > vocab.MaxContent {
		return badParam("content", "content has too many characters that HTML writes at length: more than 128 KiB in all")
	}
	return nil
}

func checkVisibility(v string) error {
	if v != "" && !slices.Contains(audience.Visibilities, v) {
		return badParam("visibility", "visibility is public, unlisted, local, followers or direct")
	}
	return nil
}

// checkTags returns the tags without a leading #, and without repeats.
func checkTags(tags []string) ([]string, error) {
	if len(tags) > maxTags {
		return nil, badParam("tags", "more than 32 tags")
	}
	var out []string
	for i, t := range tags {
		t = strings.TrimPrefix(strings.TrimSpace(t), "#")
		if n := utf8.RuneCountInString(t); n == 0 || n > maxTag {
			return nil, badParam(fmt.Sprintf("tags/%d", i), "a tag has 1 to 64 characters")
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out, nil
}
