package outbox

import (
	"slices"
	"testing"

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
	create := d.must("CreateNote", map[string]any{"content": "hi", "visibility": "public"}) // an id of an activity stands for the object that it made
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
