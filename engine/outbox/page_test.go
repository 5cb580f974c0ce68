package outbox

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// As soon as the server offers pages, a public post names its page. If it has a file, it names
// both. Posts for followers name no page.
func TestPublicPostsNameTheirPages(t *testing.T) {
	t.Parallel()
	d := town(t)
	page := func(o vocab.Doc) string {
		return strings.Replace(strings.Replace(o.Text("id"), "/users/", "/@", 1), "/objects/", "/", 1)
	}
	before := d.made("CreateNote", map[string]any{"content": "early"})
	if before["url"] != nil {
		t.Errorf("without pages a post has the url %v", before["url"])
	}
	d.Local.OfferPages()
	for visibility, want := range map[string]bool{"public": true, "unlisted": true, "followers": false} {
		if o := d.made("CreateNote", map[string]any{"content": "hi", "visibility": visibility}); (o["url"] == page(o)) != want || o["url"] != nil && !want {
			t.Errorf("a %s post has the url %v", visibility, o["url"])
		}
	}
	video := d.made("CreateObject", map[string]any{"type": "Video", "title": "A cat", "content": "It sleeps.",
		"file": map[string]any{"url": "https://v.example/cat.mp4", "mediaType": "video/mp4"}})
	for range 2 {
		links := video.Subs("url")
		if len(links) != 2 || links[0].Text("href") != "https://v.example/cat.mp4" || links[1].Text("href") != page(video) || links[1].Text("mediaType") != "text/html" {
			t.Errorf("a video has the url %v", video["url"])
		}
		video = d.made("UpdateObject", map[string]any{"objectId": video.Text("id"), "title": "Two cats"})
	}
	if after := d.made("UpdateObject", map[string]any{"objectId": before.Text("id"), "content": "late"}); after["url"] != page(after) {
		t.Errorf("once there are pages, a changed post has the url %v", after["url"])
	}
}
