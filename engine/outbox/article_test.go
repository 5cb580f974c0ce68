package outbox

import (
	"maps"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// made dispatches an action. It returns the object that the action made, as other servers get it.
func (d *desk) made(action string, params map[string]any) vocab.Doc {
	a, err := vocab.ParseActivity(d.must(action, params).Raw)
	if err != nil {
		d.t.Fatal(err)
	}
	return a.Object.Doc
}

func TestAnArticleIsATextWithATitle(t *testing.T) {
	t.Parallel()
	d := town(t)
	o := d.made("CreateArticle", map[string]any{"title": "On <cats>", "content": "They sleep. #cats", "language": "en", "visibility": "unlisted"})
	if kind, _ := o.Type(); kind != "Article" || o.Text("name") != "On <cats>" || o.Sub("source").Text("content") != "They sleep. #cats" || o.Sub("contentMap").Text("en") != o.Text("content") {
		t.Errorf("the article is %s", o.JSON())
	}
	if tags := o.Subs("tag"); len(tags) != 1 || tags[0].Text("name") != "#cats" {
		t.Errorf("its tags are %v", tags)
	}
	id := o.Text("id")
	changed := d.made("UpdateObject", map[string]any{"objectId": id, "title": "On dogs"})
	if changed.Text("name") != "On dogs" || changed.Text("content") != o.Text("content") {
		t.Errorf("with another title it is %s", changed.JSON())
	}
	note := string(d.note(map[string]any{"content": "hi"}))
	d.refused("UpdateObject", map[string]any{"objectId": note, "title": "On dogs"}, fault.Unprocessable, "invalid_parameter")
	for _, title := range []string{"", "  ", "two\nlines"} {
		d.refused("CreateArticle", map[string]any{"title": title, "content": "x"}, fault.Unprocessable, "invalid_parameter")
	}
}

func TestAVideoIsAFileAndAProductAThing(t *testing.T) {
	t.Parallel()
	d := town(t)
	file := map[string]any{"url": "https://v.example/cat.mp4", "mediaType": "video/mp4"}
	video := map[string]any{"type": "Video", "title": "A cat", "content": "It sleeps.", "file": file}
	o := d.made("CreateObject", video)
	if links := o.Subs("url"); len(links) != 1 || links[0].Text("href") != "https://v.example/cat.mp4" || links[0].Text("mediaType") != "video/mp4" || links[0].Text("type") != "Link" {
		t.Errorf("the video lies at %v", o["url"])
	}
	if kind, _ := o.Type(); kind != "Video" || o.Text("name") != "A cat" {
		t.Errorf("the video is %s", o.JSON())
	}
	thing := map[string]any{"type": "Product", "title": "A chair", "content": "For cats.", "attachments": []any{map[string]any{"url": "https://v.example/chair.png", "mediaType": "image/png"}}}
	o = d.made("CreateObject", thing)
	if kind, _ := o.Type(); kind != "Product" || o["url"] != nil || len(o.Subs("attachment")) != 1 {
		t.Errorf("the product is %s", o.JSON())
	}
	for name, wrong := range map[string]map[string]any{
		"another type":              {"type": "Note"},
		"no file":                   {"file": nil},
		"a picture for a file":      {"file": map[string]any{"url": "https://v.example/cat.png", "mediaType": "image/png"}},
		"a file without an address": {"file": map[string]any{"mediaType": "video/mp4"}},
		"a file with more":          {"file": map[string]any{"url": "https://v.example/cat.mp4", "mediaType": "video/mp4", "size": 1}},
		"a file at no address":      {"file": map[string]any{"url": "file:///etc/passwd", "mediaType": "video/mp4"}},
		"a product with a file":     {"type": "Product"},
		"no title":                  {"title": ""},
	} {
		params := maps.Clone(video)
		maps.Copy(params, wrong)
		if params["file"] == nil {
			delete(params, "file")
		}
		t.Log(name)
		d.refused("CreateObject", params, fault.Unprocessable, "invalid_parameter")
	}
}
