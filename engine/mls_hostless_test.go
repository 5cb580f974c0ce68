package engine_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// hostlessRoom is a group that sam began, who knows only the SWICG draft. Nobody orders its
// messages.
type hostlessRoom struct {
	sam        *guest
	alice, bob *seat // on two servers
}

// Row 26: sam's group has members on two Lightweb servers, whose clients share no code with the
// engine. All read each other. Of several commits of one epoch all are kept, and the clients apply
// the first valid one (conversations.md 4.3).
func TestRow26AHostlessGroupWithTSMLS(t *testing.T) {
	t.Parallel()
	devices := enginetest.StartDevices(t)
	a, b := enginetest.StartTwo(t)
	r := &hostlessRoom{alice: takeSeat(t, devices, a.CreateUser(t, "alice"), "alice's"), bob: takeSeat(t, devices, b.CreateUser(t, "bob"), "bob's")}
	r.sam = newGuest(t, devices, "127.0.0.10", r.alice, r.bob)
	for _, chapter := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"all join", r.allJoin},
		{"all talk", r.allTalk},
		{"two commit in one epoch", r.twoCommit},
		{"all talk again", r.allTalk},
	} {
		if !t.Run(chapter.name, chapter.tell) {
			t.FailNow()
		}
	}
}

func (r *hostlessRoom) seats() []*seat { return []*seat{r.alice, r.bob} }

func (r *hostlessRoom) allJoin(t *testing.T) {
	sam := r.sam
	sam.group = "urn:uuid:" + uuid.NewString()
	sam.device.Call(t, "create", map[string]any{"group": sam.group}, nil)
	var add []string
	for _, s := range r.seats() {
		follow(t, s.user, string(sam.actor.ID))
		s.publish(t)
		add = append(add, publicPackages(t, s.user)...)
	}
	m := sam.makeCommit(t, map[string]any{"add": add, "isPrivate": true})
	sam.device.Call(t, "merge", map[string]any{"group": sam.group}, nil)
	sam.sendAs(t, m.Welcomes[0], vocab.Doc{"type": []any{"Welcome"}, "topology": "FullMesh"})
	for _, s := range r.seats() {
		s.joinHostless(t)
	}
	r.expectAgreement(t)
}

// joinHostless joins by a Welcome that names no conversation, and tells the server the group.
func (s *seat) joinHostless(t *testing.T) {
	t.Helper()
	w := s.takeWelcome(t)
	s.confirm(t, w, map[string]any{"groupId": s.group})
	var mine struct{ Items []struct{ ID string } }
	if s.user.Ask(t, http.MethodGet, "/api/conversations", nil).Decode(t, &mine); len(mine.Items) != 1 {
		t.Fatalf("%s has %d conversations", s.name, len(mine.Items))
	}
	s.enter(t, mine.Items[0].ID)
}

// expectAgreement checks that all three are in one epoch with one secret.
func (r *hostlessRoom) expectAgreement(t *testing.T) {
	t.Helper()
	want := r.sam.state(t)
	for _, s := range r.seats() {
		if is := s.state(t); is.Epoch != want.Epoch || is.Secret != want.Secret {
			t.Errorf("%s is in epoch %d with another secret than sam in %d", s.name, is.Epoch, want.Epoch)
		}
	}
}

// postTo sends a message or a commit to the other two, since the server knows no members.
func (r *hostlessRoom) postTo(t *testing.T, s *seat, path string, body map[string]any) {
	t.Helper()
	to := []string{string(r.sam.actor.ID)}
	for _, other := range r.seats() {
		if other != s {
			to = append(to, other.user.ID)
		}
	}
	body["to"] = to
	if got := s.user.AskOnce(t, http.MethodPost, s.path+path, uuid.NewString(), body); got.Status != http.StatusCreated {
		t.Fatalf("%s posts to %s and is answered %d %s", s.name, path, got.Status, got.Body)
	}
}

// entries waits for n entries of the log that the seat has not read.
func (s *seat) entries(t *testing.T, n int) (all []entry) {
	t.Helper()
	enginetest.Eventually(t, s.name+" has the next entries", func() bool {
		all = s.log(t, s.read)
		return len(all) >= n
	})
	if len(all) != n {
		t.Errorf("%s has %d new entries, want %d: %+v", s.name, len(all), n, all)
	}
	s.read = all[len(all)-1].Seq
	return all
}

func (r *hostlessRoom) allTalk(t *testing.T) {
	said := r.sam.spell(t)
	for _, s := range r.seats() {
		for _, e := range s.entries(t, len(said)) {
			s.apply(t, e)
		}
		s.expectHeard(t, said...)
	}
	for n, s := range r.seats() {
		other, text := r.seats()[1-n], plaintexts(1000)[n]
		message := s.encrypt(t, text)
		s.known[message] = true
		r.postTo(t, s, "/messages", map[string]any{"message": message})
		s.entries(t, 1) // its own
		other.apply(t, other.entries(t, 1)[0])
		other.expectHeard(t, text)
		r.sam.hears(t, s.name, func() bool { return len(r.sam.heard) == 1 })
		r.sam.expectHeard(t, text)
	}
}

// twoCommit lets sam and bob commit in one epoch. A broken commit of that epoch comes first. Both
// servers keep all three in the order in which they came, and refuse none.
func (r *hostlessRoom) twoCommit(t *testing.T) {
	before := r.sam.state(t).Epoch
	late := r.bob.makeCommit(t, map[string]any{"isPrivate": true}) // before he knows sam's
	commit := r.sam.commit(t)
	broken := brokenMessage(t, commit)
	r.sam.send(t, broken)
	r.sam.send(t, commit)
	r.postTo(t, r.bob, "/commits", map[string]any{"commit": late.Commit})
	for _, s := range r.seats() {
		all := s.entries(t, 3)
		if order := []string{all[0].Content, all[1].Content, all[2].Content}; !slices.Equal(order, []string{broken, commit, late.Commit}) {
			t.Errorf("%s has the commits in another order than they came", s.name)
		}
		applied := 0
		for _, e := range all {
			if e.Kind != "commit" || e.Epoch != before {
				t.Errorf("%s has a %s of epoch %d, want a commit of %d", s.name, e.Kind, e.Epoch, before)
			}
			if s.device.Try(t, "process", map[string]any{"group": s.group, "message": e.Content}, nil) == nil {
				applied++
			}
		}
		if is := s.state(t); applied != 1 || is.Epoch != before+1 {
			t.Errorf("%s has applied %d commits and is in epoch %d, want 1 and %d", s.name, applied, is.Epoch, before+1)
		}
	}
	arrives(t, r.sam.peer, "bob's commit", func(body []byte) bool { return bytes.Contains(body, []byte(late.Commit)) })
	r.sam.seen = len(r.sam.peer.Posted()) // sam has merged his own commit: bob's is of an epoch that is over
	r.expectAgreement(t)
}

// brokenMessage returns a message whose ciphertext was changed.
func brokenMessage(t *testing.T, message string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(message)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 1
	return base64.StdEncoding.EncodeToString(raw)
}
