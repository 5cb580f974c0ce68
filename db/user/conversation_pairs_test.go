package user_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	pairUser    = vocab.ID("https://here.example/users/alice")
	pairPartner = vocab.ID("https://there.example/users/bob")
)

// letter stores a Note to the actors in the parameter to, with its Create. It stores them as the
// engine does when a Note arrives or is sent.
func letter(t *testing.T, c *dbtest.Cluster, u vocab.Username, name string, author vocab.ID, at time.Time, to ...vocab.ID) vocab.ID {
	t.Helper()
	id := author + "/" + vocab.ID(name)
	var named []any
	for _, a := range to {
		named = append(named, string(a))
	}
	d := vocab.Doc{"id": string(id), "type": "Note", "attributedTo": string(author), "content": name, "to": named}
	direction := user.Inbound
	if author == pairUser {
		direction = user.Outbound
	}
	create := vocab.Doc{"id": string(id) + "/create", "type": "Create", "actor": string(author), "object": string(id), "to": named}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: id, Author: author, Published: at, Raw: d.JSON()}); err != nil {
			return err
		}
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: id + "/create", Direction: direction, Type: "Create", Actor: author, Object: id, Published: at, Raw: create.JSON()})
	})
	return id
}

// A Note that its author deleted is not counted as unread. Its entry in the timeline stays,
// without the Note.
func TestADeletedNoteIsNeitherUnreadNorShown(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var id uuid.UUID
	add := func(name string) vocab.ID {
		note := letter(t, c, u, name, pairPartner, at, pairUser)
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			pair, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: pairUser, Partner: pairPartner, Object: note, At: at})
			id = pair.ID
			return err
		})
		return note
	}
	deleted, stays := add("deleted"), add("stays")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Bury(ctx, user.Grave{URI: deleted, Author: pairPartner, Tombstone: []byte(`{"type":"Tombstone"}`)}, at)
		return err
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		list, err := tx.Conversations.List(ctx, pairUser, nil, 10)
		if err != nil || len(list) != 1 || list[0].Unread != 1 {
			return fmt.Errorf("%+v, want 1 unread, %w", list, err)
		}
		all, _, err := tx.Conversations.ListTimeline(ctx, id, pairUser, user.TimelineEnd, 3)
		if err != nil || len(all) != 2 {
			return fmt.Errorf("timeline %+v, %w", all, err)
		}
		for _, e := range all {
			if (e.Raw != nil) != (e.Object == stays) || e.Object == deleted && e.Readable != nil {
				t.Errorf("%s is shown as %s, %s", e.Object, e.Raw, e.Readable)
			}
		}
		return nil
	})
}

// A new conversation of two begins with the earlier Notes that were between these two actors
// alone. Later Notes follow.
func TestAPairBeginsWithItsEarlierNotes(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC) }
	first := letter(t, c, u, "first", pairPartner, at(1), pairUser)
	second := letter(t, c, u, "second", pairUser, at(2), pairPartner)
	letter(t, c, u, "three", pairPartner, at(3), pairUser, "https://there.example/users/carol")
	letter(t, c, u, "public", pairPartner, at(3), vocab.Public)
	letter(t, c, u, "nobody", pairPartner, at(3))
	letter(t, c, u, "carol", pairUser, at(3), "https://there.example/users/carol")
	third := letter(t, c, u, "third", pairPartner, at(4), pairUser)

	var id uuid.UUID
	add := func(object vocab.ID, own, wantMade bool, at time.Time) {
		t.Helper()
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			pair, made, err := tx.Pairs.AddNote(ctx, user.PairNote{User: pairUser, Partner: pairPartner, Object: object, Own: own, At: at})
			if err == nil && (made != wantMade || pair.Partner != pairPartner || pair.Mode != user.ModeFederated || id != uuid.Nil && pair.ID != id) {
				return fmt.Errorf("made %v, %+v", made, pair)
			}
			if err == nil {
				id = pair.ID
			}
			return err
		})
	}
	add(third, false, true, at(4))
	add(third, false, false, at(4)) // the same Note again
	fourth := letter(t, c, u, "fourth", pairUser, at(5), pairPartner)
	add(fourth, true, false, at(5))
	var shown []vocab.ID
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		all, more, err := tx.Conversations.ListTimeline(ctx, id, pairUser, user.TimelineEnd, 3)
		if err != nil || !more {
			return fmt.Errorf("more: %v, %w", more, err)
		}
		last := all[len(all)-1]
		rest, more, err := tx.Conversations.ListTimeline(ctx, id, pairUser, user.TimelinePlace{Seq: last.Seq, N: last.N}, 3)
		for _, e := range append(all, rest...) {
			shown = append(shown, e.Object)
		}
		if err != nil || more {
			return fmt.Errorf("more: %v, %w", more, err)
		}
		members, err := tx.Conversations.ListMembers(ctx, id)
		if err != nil || len(members) != 2 || members[0].Actor != pairUser || members[1].Actor != pairPartner {
			return fmt.Errorf("members %+v, %w", members, err)
		}
		if shares, err := tx.Conversations.IsShared(ctx, pairPartner); err != nil || shares {
			return fmt.Errorf("a conversation in the open counts as a shared one: %w", err)
		}
		list, err := tx.Conversations.List(ctx, pairUser, nil, 10)
		if err != nil || len(list) != 1 || list[0].Unread != 1 {
			return fmt.Errorf("list %+v, %w", list, err)
		}
		return nil
	})
	if want := []vocab.ID{fourth, third, second, first}; !slices.Equal(shown, want) {
		t.Errorf("the timeline is %v, want %v", shown, want)
	}
	for _, moves := range []bool{true, false} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			marked, err := tx.Conversations.MarkRead(ctx, id, 1000, 1000)
			if (marked != nil) != moves || moves && (marked.ReadEntry != 3 || marked.ReadSeq != 0) {
				t.Errorf("marked %+v, want that it moved is %v", marked, moves)
			}
			return err
		})
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		n, err := tx.Conversations.CountUnread(ctx, id, pairUser)
		if err != nil || n != 0 {
			return fmt.Errorf("unread %d: %w", n, err)
		}
		found, err := tx.Conversations.Find(ctx, id)
		if err == nil && found.ReadEntry != 3 {
			err = fmt.Errorf("read up to %d", found.ReadEntry)
		}
		return err
	})
}
