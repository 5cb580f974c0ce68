package feed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// names returns the ids of the activities in a feed. It reads the feed in pages of two.
func (f *fixture) names(name string) (all []vocab.ID) {
	f.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		p, err := f.Page(f.Context(), f.alice, name, cursor, 2)
		if err != nil {
			f.Fatal(name, err)
		}
		for _, i := range p.Items {
			all = append(all, i.ActivityURI)
		}
		cursor = p.Next
	}
	return all
}

func TestAGroupAndATagHaveFeeds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const carol vocab.ID = "https://peer.example/users/carol"
	group := user.Group{ID: uuid.New(), Name: "close.friends-1", URI: "https://example.org/g"}
	f.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Groups.Add(ctx, group, start); err != nil {
			return err
		}
		return tx.Groups.Add(ctx, user.Group{ID: uuid.New(), Name: "empty", URI: "https://example.org/e"}, start)
	})
	var bobs []vocab.ID
	for n := range 5 {
		id := vocab.ID(fmt.Sprintf("https://peer.example/notes/%d", n))
		f.object(id, fmt.Sprintf(`{"id":%q,"type":"Note","tag":{"type":"Hashtag","name":"#Tag%d"},"lwTags":["a.b-c"]}`, id, n%2))
		bobs = append([]vocab.ID{f.receive(fmt.Sprint(n), "Create", id, string(vocab.Public), start.Add(time.Duration(n)*time.Second)).URI}, bobs...)
	}
	const members = "group.close.friends-1"
	if got := f.names(members); len(got) != 0 {
		t.Errorf("before anybody is in the group, it has %v", got)
	}
	join := func(who vocab.ID) {
		f.write(func(ctx context.Context, tx *user.Tx) error {
			return tx.Groups.AddMember(ctx, group.ID, who, "", start)
		})
	}
	join(carol)
	join("https://peer.example/users/bob")
	tagged, filled := user.Stream{ID: uuid.New(), Name: "tagged", Tags: []string{"tag1"}, URI: "https://example.org/s/1", CreatedAt: start}, user.Stream{ID: uuid.New(), Name: "filled", URI: "https://example.org/s/2", CreatedAt: start}
	f.write(func(ctx context.Context, tx *user.Tx) error {
		for _, s := range []user.Stream{tagged, filled} {
			if err := tx.Streams.Add(ctx, s); err != nil {
				return err
			}
			if err := tx.Streams.AddObject(ctx, s.URI, user.StreamObject{Object: "https://peer.example/notes/0", ID: uuid.New(), AddedAt: start}); err != nil {
				return err
			}
		}
		return nil
	})
	inTagged, inFilled := feed.StreamPrefix+tagged.ID.String(), feed.StreamPrefix+filled.ID.String()
	for name, want := range map[string][]vocab.ID{members: bobs, "group.empty": nil, "tag.tag0": {bobs[0], bobs[2], bobs[4]}, "tag.#TAG1": {bobs[1], bobs[3]}, "tag.a.b-c": bobs, "tag.none": nil,
		inTagged: {bobs[1], bobs[3], bobs[4]}, inFilled: {bobs[4]}} {
		if d := cmp.Diff(want, f.names(name)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	f.gate["https://peer.example/users/bob"] = true
	if got := f.names(members); len(got) != 0 {
		t.Errorf("of an actor that the operator refuses, %v are shown", got)
	}
	clear(f.gate)
	page, err := f.Page(t.Context(), f.alice, members, "", 2)
	if err != nil || page.Next == "" {
		t.Fatal(page.Next, err)
	}
	ofTag, err := f.Page(t.Context(), f.alice, "tag.TAG0", "", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Page(t.Context(), f.alice, "tag.tag0", ofTag.Next, 2); err != nil {
		t.Errorf("the cursor of a tag in another case: %v", err)
	}
	for _, c := range []struct {
		name, feed, cursor string
		want               fault.Kind
	}{
		{"a group that is not there", "group.none", "", fault.NotFound},
		{"a stream that is not there", "stream." + uuid.NewString(), "", fault.NotFound},
		{"no stream", "stream.featured", "", fault.NotFound},
		{"no group", "group.", "", fault.NotFound},
		{"no tag", "tag.#", "", fault.NotFound},
		{"a tag that is too long", "tag." + strings.Repeat("ä", 129), "", fault.NotFound},
		{"neither", "friends.a", "", fault.NotFound},
		{"the main feed's with a group's cursor", feed.Main, page.Next, fault.Invalid},
		{"another group's cursor", "group.empty", page.Next, fault.Invalid},
	} {
		if _, err := f.Page(t.Context(), f.alice, c.feed, c.cursor, 2); fault.KindOf(err) != c.want || err == nil {
			t.Errorf("%s: %v, want kind %d", c.name, err, c.want)
		}
	}
}
