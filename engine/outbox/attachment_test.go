package outbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// posted dispatches an action and checks the activity's proof. It returns the object as other
// servers get it.
func (d *desk) posted(action string, params map[string]any) vocab.Doc {
	d.t.Helper()
	a, err := vocab.ParseActivity(d.must(action, params).Raw)
	if err != nil {
		d.t.Fatal(err)
	}
	d.checkProof(a.Doc)
	return a.Object.Doc
}

func TestAttachmentsAndLanguageOnTheWire(t *testing.T) {
	t.Parallel()
	d := town(t)
	type m = map[string]any
	note := d.posted("CreateNote", m{"content": "look", "language": "pt-BR", "attachments": []any{
		m{"url": "https://img.example/a.png", "mediaType": "image/png", "name": "a <cat>", "focalPoint": []any{-0.25, 1}},
		m{"url": "https://img.example/b.mp4", "mediaType": "video/mp4"},
		m{"url": "https://img.example/c.ogg", "mediaType": "audio/ogg", "name": ""},
		m{"url": "https://img.example/d.pdf", "mediaType": "application/pdf", "focalPoint": []any{}}}})
	want := `[{"focalPoint":[-0.25,1],"mediaType":"image/png","name":"a <cat>","type":"Image","url":"https://img.example/a.png"},` +
		`{"mediaType":"video/mp4","type":"Document","url":"https://img.example/b.mp4"},{"mediaType":"audio/ogg","type":"Document","url":"https://img.example/c.ogg"},` +
		`{"mediaType":"application/pdf","type":"Document","url":"https://img.example/d.pdf"}]`
	if got := string(vocab.Doc{"a": note["attachment"]}.JSON()); got != `{"a":`+want+`}` {
		t.Errorf("attached is %s", got)
	}
	if diff := cmp.Diff(vocab.Doc{"pt-BR": "<p>look</p>"}, note.Sub("contentMap")); diff != "" {
		t.Error(diff)
	}
	id := note.Text("id")
	if note = d.posted("UpdateObject", m{"objectId": id, "content": "see"}); note["attachment"] == nil || note.Sub("contentMap").Text("pt-BR") != "<p>see</p>" {
		t.Errorf("new words alone make it %s", note.JSON())
	}
	if note = d.posted("UpdateObject", m{"objectId": id, "language": "", "attachments": []any{}}); note["attachment"] != nil || note["contentMap"] != nil || note.Text("content") != "<p>see</p>" {
		t.Errorf("without attachments and language it is %s", note.JSON())
	}
}

func TestAttachmentsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	d := town(t)
	type m = map[string]any
	good := func(change string, value any) m {
		a := m{"url": "https://img.example/a.png", "mediaType": "image/png"}
		a[change] = value
		return a
	}
	many := make([]any, 17)
	for n := range many {
		many[n] = good("name", "x")
	}
	long := make([]rune, 1501)
	for n := range long {
		long[n] = 'ä'
	}
	for at, attachments := range map[string]any{
		"/params/attachments":               many,
		"/params/attachments/0":             []any{"https://img.example/a.png"},
		"/params/attachments/1/url":         []any{good("name", "x"), good("url", "file:///etc/passwd")},
		"/params/attachments/0/mediaType":   []any{good("mediaType", "image/png; q=1")},
		"/params/attachments/0/name":        []any{good("name", string(long))},
		"/params/attachments/0/focalPoint":  []any{good("focalPoint", []any{0, 1.1})},
		"/params/attachments/0/Url":         []any{good("Url", "https://img.example/b.png")},
		"/params/attachments/0/blurhash~01": []any{good("blurhash~1", "x")},
	} {
		_, err := d.dispatch("CreateNote", m{"content": "x", "attachments": attachments})
		if e := fault.Of(err); e == nil || e.Kind != fault.Unprocessable || e.Code != "invalid_parameter" || e.Pointer != at {
			t.Errorf("%s: refused with %+v", at, e)
		}
	}
	d.refused("CreateNote", m{"content": "x", "language": "a language"}, fault.Unprocessable, "invalid_parameter")
	if n := d.sent(); n != 0 {
		t.Errorf("%d activities were made", n)
	}
}
