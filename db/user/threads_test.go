package user_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// addAnswer stores an object by bob with a name. The parameter to is its inReplyTo as JSON.
func addAnswer(ctx context.Context, tx *user.Tx, name, to string, at time.Time) error {
	_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: thing(name), Published: at, Raw: []byte(`{"inReplyTo":` + to + `}`)})
	return err
}

func thing(name string) vocab.ID { return "https://peer.example/notes/" + vocab.ID(name) }

// namesOf returns the last part of each object's id.
func namesOf(objects []user.HeldObject) (names string) {
	for _, o := range objects {
		names += string(o.URI[strings.LastIndex(string(o.URI), "/")+1:]) + " "
	}
	return strings.TrimSpace(names)
}

func TestAncestorsAreFollowedUpToTheFirst(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	quoted := func(name string) string { return `"` + string(thing(name)) + `"` }
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for name, to := range map[string]string{"root": "null", "a": quoted("root"), "b": `{"id":` + quoted("a") + `}`, "c": `[` + quoted("b") + `,` + quoted("x") + `]`,
			"d": `[{"id":` + quoted("c") + `}]`, "lost": quoted("nowhere"), "self": quoted("self"), "ping": quoted("pong"), "pong": quoted("ping"), "number": "7"} {
			if err := addAnswer(ctx, tx, name, to, now); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, tt := range []struct {
			of   string
			n    int
			want string
		}{
			{"d", 40, "root a b c d"},
			{"d", 2, "c d"},
			{"root", 40, "root"},
			{"lost", 40, "lost"},
			{"self", 40, "self"},
			{"ping", 40, "pong ping"},
			{"number", 40, "number"},
			{"nowhere", 40, ""},
		} {
			chain, err := tx.Threads.ListAncestors(ctx, thing(tt.of), tt.n)
			if err != nil || namesOf(chain) != tt.want {
				t.Errorf("Threads.ListAncestors(%s, %d) = %q, %v; want %q", tt.of, tt.n, namesOf(chain), err, tt.want)
			}
		}
		return nil
	})
}

func TestAnswersComeTheOldestFirst(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	large := `"` + string(thing("large")) + `","content":"` + strings.Repeat("x", 5000) + `"`
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, to := range []string{`"` + string(thing("root")) + `"`, `["` + string(thing("other")) + `","` + string(thing("root")) + `"]`, `"` + string(thing("else")) + `"`, large, large, large} {
			if err := addAnswer(ctx, tx, fmt.Sprint(n), to, now.Add(-time.Duration(n)*time.Second)); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, tt := range []struct {
			to    string
			n     int
			bytes int
			want  string
		}{
			{"root", 10, user.MaxFeed, "0"},
			{"other", 10, user.MaxFeed, "1"}, // an answer to several stands under the first one
			{"root other", 1, user.MaxFeed, "1"},
			{"root other", 10, user.MaxFeed, "1 0"},
			{"root else", 10, user.MaxFeed, "2 0"},
			{"nothing", 10, user.MaxFeed, ""},
			{"large", 10, 6000, "5 4"},
		} {
			var to []vocab.ID
			for _, name := range strings.Fields(tt.to) {
				to = append(to, thing(name))
			}
			answers, err := tx.Threads.ListAnswers(ctx, to, tt.n, tt.bytes)
			if err != nil || namesOf(answers) != tt.want {
				t.Errorf("Threads.ListAnswers(%s, %d, %d) = %q, %v; want %q", tt.to, tt.n, tt.bytes, namesOf(answers), err, tt.want)
			}
		}
		return nil
	})
}

// A stranger's note stands under the one post that it answers, by which it was taken, whatever
// else its inReplyTo lists or uses as a key.
func TestANoteStandsUnderOnePost(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	targets := []vocab.ID{thing("root"), thing("other")}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for name, to := range map[string]string{"keys": `{"id":"https://else.example/1","%[1]s":1,"%[2]s":1}`, "list": `["https://else.example/1","%[1]s","%[2]s"]`,
			"objects": `[{"id":"https://else.example/1","%[1]s":1},"%[2]s"]`, "answer": `["%[1]s","%[2]s"]`, "root": `""`, "other": `""`} {
			raw := `{"attributedTo":"https://peer.example/users/m","to":["as:Public"],"inReplyTo":` + fmt.Sprintf(to+"%.0[1]s%.0[2]s", targets[0], targets[1]) + `}`
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: thing(name), Published: now, Raw: []byte(raw)}); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for to, want := range map[vocab.ID][]vocab.ID{targets[0]: {thing("answer")}, targets[1]: nil} {
			held, err := tx.Threads.ListAnswers(ctx, []vocab.ID{to}, 10, user.MaxFeed)
			public, err2 := tx.Threads.ListPublicAnswers(ctx, to, nil, 10)
			tree, err3 := tx.Threads.ListPublic(ctx, to, nil, 10)
			counts, err4 := tx.Threads.CountResponses(ctx, "https://here.example/users/alice", []vocab.ID{to})
			if err := errors.Join(err, err2, err3, err4); err != nil {
				return err
			}
			if len(held) != len(want) || len(public) != len(want) || len(tree) != len(want)+1 || counts[to].Replies != len(want) {
				t.Errorf("under %s stand %s, to strangers %v and %v, and %d are counted; want %v", to, namesOf(held), public, tree, counts[to].Replies, want)
			}
		}
		return nil
	})
}

func TestResponsesAreCounted(t *testing.T) {
	t.Parallel()
	const me vocab.ID = "https://here.example/users/alice"
	c, u := alice(t)
	liked, quiet := thing("liked"), thing("quiet")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, r := range []user.Reaction{
			{Object: liked, Actor: bob, Kind: user.Review, Type: "Like"}, {Object: liked, Actor: carol, Kind: user.Review, Type: "Dislike"},
			{Object: liked, Actor: me, Kind: user.Review, Type: "Like"}, {Object: liked, Actor: carol, Kind: user.Announce, Type: "Announce"},
			{Object: liked, Actor: carol, Kind: user.Emoji, Emoji: "🐢", Type: "Like"},
		} {
			r.Activity = r.Actor + "/" + vocab.ID(r.Kind+r.Type)
			if err := tx.Reactions.Set(ctx, r, now); err != nil {
				return err
			}
		}
		for n := range 3 {
			if err := addAnswer(ctx, tx, fmt.Sprint(n), `"`+string(liked)+`"`, now); err != nil {
				return err
			}
		}
		letter := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: carol + "/create", Direction: user.Inbound, Type: vocab.Create, Actor: carol, Object: thing("2"), Published: now, Raw: []byte(`{"object":{},"to":["x"]}`)}
		if err := tx.Activities.Add(ctx, letter); err != nil {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: letter.URI, Actor: carol, Host: "peer.example"}, now)
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.Threads.CountResponses(ctx, me, []vocab.ID{liked, quiet})
		want := user.Responses{Object: liked, Replies: 2, Likes: 2, Dislikes: 1, Boosts: 1, Liked: true}
		if err != nil || got[liked] != want || got[quiet] != (user.Responses{Object: quiet}) {
			t.Errorf("Threads.CountResponses = %+v, %v; want %+v", got, err, want)
		}
		answers, err := tx.Threads.ListAnswers(ctx, []vocab.ID{liked}, 10, user.MaxFeed)
		waits := slices.IndexFunc(answers, func(o user.HeldObject) bool { return o.Waits })
		if err != nil || len(answers) != 3 || waits < 0 || answers[waits].URI != thing("2") || answers[waits].Creator != carol || string(answers[waits].Create) != `{"to": ["x"]}` {
			t.Errorf("Threads.ListAnswers = %+v, %v; want the third among the requests", answers, err)
		}
		o, err := tx.Threads.Find(ctx, thing("0"))
		if err != nil || o == nil || o.Creator != "" || o.Create != nil || o.Waits {
			t.Errorf("Threads.Find = %+v, %v", o, err)
		}
		if o, err := tx.Threads.Find(ctx, thing("nothing")); o != nil || err != nil {
			t.Errorf("HeldObject of nothing = %+v, %v", o, err)
		}
		return nil
	})
}

// An object waits while a request about it waits, even if another activity brought the object
// first.
func TestAnObjectWaitsWhileAnyRequestIsAboutIt(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	came := func(ctx context.Context, tx *user.Tx, name, kind string, by vocab.ID, request bool) error {
		a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: by + vocab.ID("/"+kind+"/"+name), Direction: user.Inbound, Type: kind, Actor: by, Object: thing(name), Published: now, Raw: []byte(`{}`)}
		if err := tx.Activities.Add(ctx, a); err != nil || !request {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: a.URI, Actor: by, Host: "peer.example"}, now)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		var errs []error
		for _, name := range []string{"created", "boosted", "both", "liked"} {
			errs = append(errs, addAnswer(ctx, tx, name, "null", now))
		}
		return errors.Join(append(errs, came(ctx, tx, "created", vocab.Create, bob, true), came(ctx, tx, "boosted", vocab.Announce, bob, true),
			came(ctx, tx, "both", vocab.Create, bob, false), came(ctx, tx, "both", vocab.Announce, bob, true),
			came(ctx, tx, "liked", vocab.Create, bob, false), came(ctx, tx, "liked", vocab.Like, carol, false))...)
	})
	waiting := func() (names string) {
		t.Helper()
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			held, err := tx.Threads.FindAll(ctx, []vocab.ID{thing("created"), thing("boosted"), thing("both"), thing("liked")})
			names = namesOf(slices.DeleteFunc(held, func(o user.HeldObject) bool { return !o.Waits }))
			return err
		})
		return names
	}
	if got, want := waiting(), "created boosted both"; got != want {
		t.Errorf("%q wait, want %q", got, want)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Requests.Accept(ctx, bob, now)
		return err
	})
	if got := waiting(); got != "" {
		t.Errorf("after the requests were accepted %q wait", got)
	}
}
