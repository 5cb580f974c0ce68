package outbox

import (
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAStreamIsFilledAndFollowersAreTold(t *testing.T) {
	t.Parallel()
	d := town(t)
	stream := d.made("CreateStream", map[string]any{"name": "Cats", "tags": []string{"#cats"}})
	id := stream.Text("id")
	if kind, _ := stream.Type(); kind != vocab.OrderedCollection || stream.Text("name") != "Cats" || stream.Text("attributedTo") != string(me) {
		t.Errorf("the stream is %s", stream.JSON())
	}
	if again := d.must("CreateStream", map[string]any{"name": "Cats", "tags": []string{"cats"}}); again.Object != vocab.ID(id) {
		t.Errorf("made again, it is %s", again.Object)
	}
	d.refused("CreateStream", map[string]any{"name": "Cats", "tags": []string{"dogs"}}, fault.Conflict, "stream_exists")
	add := d.must("AddToStream", map[string]any{"streamId": id, "objectId": bobsPost})
	if sent, err := vocab.ParseActivity(add.Raw); err != nil || sent.Type != vocab.Add || sent.Object.ID != bobsPost || string(sent.Target.ID) != id || !slices.Contains(sent.To, vocab.Public) {
		t.Errorf("the Add is %s (%v)", add.Raw, err)
	}
	if again := d.must("AddToStream", map[string]any{"streamId": id, "objectId": bobsPost}); again.URI != add.URI {
		t.Errorf("added again, by %s and not %s", again.URI, add.URI)
	}
	remove := d.must("RemoveFromStream", map[string]any{"streamId": id, "objectId": bobsPost})
	if remove.Type != vocab.Remove || remove.Object != bobsPost {
		t.Errorf("the Remove is %s", remove.Raw)
	}
	d.refused("RemoveFromStream", map[string]any{"streamId": id, "objectId": bobsPost}, fault.NotFound, "not_in_stream")
	create := d.must("CreateNote", map[string]any{"content": "hi", "visibility": "public"}) // an activity's id can be used for its object's id
	for _, action := range []string{"AddToStream", "RemoveFromStream"} {
		if did := d.must(action, map[string]any{"streamId": id, "objectId": string(create.URI)}); did.Object != create.Object {
			t.Errorf("%s of what %s made is about %s", action, create.URI, did.Object)
		}
	}
	if gone := d.must("DeleteStream", map[string]any{"streamId": id}); gone.Type != vocab.Remove || string(gone.Object) != id {
		t.Errorf("it is deleted by %s", gone.Raw)
	}
	d.refused("DeleteStream", map[string]any{"streamId": id}, fault.NotFound, "no_stream")
	d.refused("AddToStream", map[string]any{"streamId": id, "objectId": bobsPost}, fault.NotFound, "no_stream")
}

func TestOnlyPublicObjectsAreShownInStreams(t *testing.T) {
	t.Parallel()
	d := town(t)
	id := d.made("CreateStream", map[string]any{"name": "Cats"}).Text("id")
	own, private := string(d.note(map[string]any{"content": "hi"})), string(d.note(map[string]any{"content": "hi", "visibility": "followers"}))
	for _, stream := range []string{id, featured} {
		d.refused("AddToStream", map[string]any{"streamId": stream, "objectId": private}, fault.Forbidden, "not_public")
		d.must("AddToStream", map[string]any{"streamId": stream, "objectId": own})
	}
	d.refused("AddToStream", map[string]any{"streamId": featured, "objectId": bobsPost}, fault.Forbidden, "not_own_object")
	d.refused("AddToStream", map[string]any{"streamId": "https://p.example/streams/1", "objectId": own}, fault.NotFound, "no_stream")
	d.refused("DeleteStream", map[string]any{"streamId": featured}, fault.Unprocessable, "invalid_parameter")
	d.must("DeleteObject", map[string]any{"objectId": own})
	for _, stream := range []string{id, featured} {
		d.refused("RemoveFromStream", map[string]any{"streamId": stream, "objectId": own}, fault.NotFound, "not_in_stream")
		d.refused("AddToStream", map[string]any{"streamId": stream, "objectId": own}, fault.Gone, "")
	}
}

// A post that is written for a stream has its own Add. Followers get the Add with the post. If the
// Add is not possible, the post is not written.
func TestAPostIsWrittenIntoAStream(t *testing.T) {
	t.Parallel()
	d := town(t)
	id := d.made("CreateStream", map[string]any{"name": "Cats"}).Text("id")
	d.owed()
	for _, stream := range []string{id, featured} {
		for action, params := range map[string]map[string]any{
			"CreateNote":    {"content": "hi", "streamTarget": stream},
			"CreateArticle": {"title": "Hi", "content": "hi", "streamTarget": stream},
			"CreateObject":  {"type": "Product", "title": "Hi", "content": "hi", "streamTarget": stream},
		} {
			before := d.sent()
			r, err := d.dispatch(action, params)
			if err != nil {
				t.Fatalf("%s: %v", action, err)
			}
			if n := d.sent() - before; n != 2 {
				t.Errorf("%s makes %d activities, want a Create and an Add", action, n)
			}
			types := map[string]int{}
			for _, row := range d.owed() {
				types[row.Type]++
			}
			if types["Create"] != 2 || types["Add"] != 2 {
				t.Errorf("%s owes followers %v", action, types)
			}
			gone := d.must("RemoveFromStream", map[string]any{"streamId": stream, "objectId": string(r.ObjectID)})
			if gone.Object != r.ObjectID {
				t.Errorf("%s put %s into the stream, want %s", action, gone.Object, r.ObjectID)
			}
			d.owed()
		}
	}
	before := d.sent()
	d.refused("CreateNote", map[string]any{"content": "hi", "streamTarget": id, "visibility": "local"}, fault.Forbidden, "not_public")
	d.refused("CreateNote", map[string]any{"content": "hi", "streamTarget": here + "/users/alice/streams/none"}, fault.NotFound, "no_stream")
	d.refused("CreateNote", map[string]any{"content": "hi", "streamTarget": "cats"}, fault.Unprocessable, "invalid_parameter")
	if err := d.assist(d.token, "CreateNote", vocab.Doc{"content": "hi", "streamTarget": id}); fault.Of(err) == nil || fault.Of(err).Code != "insufficient_scope" {
		t.Errorf("an LLM engine puts a post into a stream: %v", err)
	}
	if d.sent() != before {
		t.Error("a post that was refused is written")
	}
}

// A pin above the limit is refused. It does not replace another pin, because peers would not learn
// of that.
func TestATwentyFirstPinIsRefused(t *testing.T) {
	t.Parallel()
	d := town(t)
	var first string
	for n := range user.MaxPins {
		note := string(d.note(map[string]any{"content": "hi", "streamTarget": featured}))
		if n == 0 {
			first = note
		}
	}
	another := string(d.note(map[string]any{"content": "hi"}))
	d.refused("AddToStream", map[string]any{"streamId": featured, "objectId": another}, fault.Conflict, "too_many_objects")
	before := d.sent()
	d.refused("CreateNote", map[string]any{"content": "hi", "streamTarget": featured}, fault.Conflict, "too_many_objects")
	if d.sent() != before {
		t.Error("a post that found no room is written")
	}
	d.must("RemoveFromStream", map[string]any{"streamId": featured, "objectId": first})
	d.must("AddToStream", map[string]any{"streamId": featured, "objectId": another})
}
