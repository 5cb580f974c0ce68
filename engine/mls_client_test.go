package engine_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Row 29 of docs/conversations.md, Cases and their tests. Devices of one user hold a conversation
// through the engine. Their clients share no code with the engine.
func TestRow29DevicesMadeWithTSMLS(t *testing.T) {
	t.Parallel()
	devices := enginetest.StartDevices(t)
	alice := enginetest.Start(t).CreateUser(t, "alice")
	r := &room{}
	for _, name := range []string{"phone", "laptop", "tablet"} {
		r.seats = append(r.seats, takeSeat(t, devices, alice, name))
	}
	r.play(t)
}

// room is a conversation. Its first seat is the host. The tests remove its last seat at the end.
type room struct{ seats []*seat }

func (r *room) host() *seat     { return r.seats[0] }
func (r *room) last() *seat     { return r.seats[len(r.seats)-1] }
func (r *room) others() []*seat { return r.seats[1:] }

func (r *room) play(t *testing.T) {
	for _, chapter := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"all are added", r.allAreAdded},
		{"all talk", r.allTalk},
		{"all commit at once", r.allCommitAtOnce},
		{"messages come in another order", r.anotherOrder},
		{"messages come again", r.messagesComeAgain},
		{"messages come late", r.messagesComeLate},
		{"a message comes early", r.messageComesEarly},
		{"the servers are killed", r.serversAreKilled},
		{"one is removed", r.oneIsRemoved},
		{"nothing is read here", r.nothingIsReadHere},
	} {
		if !t.Run(chapter.name, chapter.tell) {
			t.FailNow()
		}
	}
}

// allHear lets all seats read the log up to a number.
func (r *room) allHear(t *testing.T, seq int64) {
	t.Helper()
	for _, s := range r.seats {
		s.catchUp(t, seq)
	}
}

func (r *room) allAreAdded(t *testing.T) {
	r.host().begin(t)
	for _, s := range r.others() {
		s.publish(t)
	}
	// the packages of each user, in the order of the user's collection
	packages := map[string][]string{}
	for _, s := range r.others() {
		if _, known := packages[s.user.ID]; !known {
			packages[s.user.ID] = publicPackages(t, s.user)
		}
	}
	all := []string{}
	for _, of := range packages {
		all = append(all, of...)
	}
	if len(all) != len(r.others()) {
		t.Fatalf("%d key packages are shown of %d devices", len(all), len(r.others()))
	}
	a, _ := r.host().commit(t, map[string]any{"add": all})
	for _, s := range r.others() {
		s.join(t)
	}
	r.allHear(t, a.Seq)
	expectAgreement(t, r.seats...)
	if c := r.host().conversation(t); c.Epoch != 1 || a.Epoch != 1 {
		t.Errorf("the conversation is %+v after a commit that was answered %+v", c, a)
	}
}

func (r *room) allTalk(t *testing.T) {
	var last accepted
	for _, s := range r.seats {
		last = s.say(t, "I am "+s.name)
	}
	r.allHear(t, last.Seq)
	for _, s := range r.seats {
		var want []string
		for _, other := range r.seats {
			if other != s {
				want = append(want, "I am "+other.name)
			}
		}
		s.expectHeard(t, want...)
	}
}

// allCommitAtOnce lets all seats commit in the same epoch. The host accepts one commit. The other
// seats get the log entries that they need to commit again.
func (r *room) allCommitAtOnce(t *testing.T) {
	before := r.host().state(t).Epoch
	for pending := slices.Clone(r.seats); len(pending) > 0; {
		commits, answers := make([]made, len(pending)), make([]enginetest.Answer, len(pending))
		for i, s := range pending {
			commits[i] = s.makeCommit(t, nil)
		}
		var at sync.WaitGroup
		for i, s := range pending {
			at.Go(func() { answers[i] = s.propose(t, commits[i]) })
		}
		at.Wait()
		var refused []*seat
		for i, s := range pending {
			if !s.conclude(t, commits[i], answers[i], &accepted{}) {
				refused = append(refused, s)
			}
		}
		if len(refused) != len(pending)-1 {
			t.Fatalf("of %d commits of one epoch %d are refused", len(pending), len(refused))
		}
		pending = refused
		last := r.host().conversation(t).LastSeq
		r.allHear(t, last)
	}
	if after := r.host().state(t).Epoch; after != before+int64(len(r.seats)) {
		t.Errorf("%d commits led from epoch %d to %d", len(r.seats), before, after)
	}
	expectAgreement(t, r.seats...)
}

func (r *room) anotherOrder(t *testing.T) {
	s := r.last()
	var written []string
	for _, text := range []string{"one", "two", "three"} {
		written = append(written, s.encrypt(t, text))
	}
	var last accepted
	for _, i := range []int{2, 0, 1} {
		last = s.send(t, written[i])
	}
	r.allHear(t, last.Seq)
	for _, other := range r.seats[:len(r.seats)-1] {
		other.expectHeard(t, "three", "one", "two")
	}
}

// messagesComeAgain sends a message twice. It sends a commit under another key, and a message to a
// device that already has it.
func (r *room) messagesComeAgain(t *testing.T) {
	message := r.last().encrypt(t, "once")
	first := r.last().send(t, message)
	again := r.last().post(t, message)
	var second accepted
	if again.Decode(t, &second); second != first || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a message that was answered %+v is answered %d %s when it comes again", first, again.Status, again.Body)
	}
	r.allHear(t, first.Seq)
	r.host().expectHeard(t, "once")
	if err := r.host().device.Try(t, "process", map[string]any{"group": r.host().group, "message": message}, nil); err == nil {
		t.Error("the client decrypts a message twice")
	}

	m := r.host().makeCommit(t, nil)
	var taken accepted
	if !r.host().conclude(t, m, r.host().propose(t, m), &taken) {
		t.Fatal("a commit with no rival is refused")
	}
	if got := r.host().propose(t, m); got.Status != http.StatusCreated || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the commit is answered %d %s when it comes again", got.Status, got.Body)
	}
	m.key += "-again"
	if got := r.host().propose(t, m); !isRefused(got, http.StatusConflict, "epoch_conflict") {
		t.Errorf("the commit is answered %d %s under another key", got.Status, got.Body)
	}
	r.allHear(t, taken.Seq)
	expectAgreement(t, r.seats...)
	for _, s := range r.others() {
		s.heard = nil
	}
}

// comes sends a seat's message, which all others read.
func (r *room) comes(t *testing.T, from *seat, message, text string) (a accepted) {
	t.Helper()
	for _, s := range r.seats {
		s.heard = nil
	}
	a = from.send(t, message)
	r.allHear(t, a.Seq)
	for _, s := range r.seats {
		if s != from {
			s.expectHeard(t, text)
		}
	}
	return a
}

// expectUnread checks that no device but the writer's can read a message now.
func (r *room) expectUnread(t *testing.T, writer *seat, message, what string) {
	t.Helper()
	for _, s := range r.seats {
		if s == writer {
			continue
		}
		if err := s.device.Try(t, "process", map[string]any{"group": s.group, "message": message}, nil); err == nil {
			t.Errorf("%s reads a message %s", s.name, what)
		}
	}
}

// messagesComeLate sends messages that were encrypted one, five and six epochs ago (row 7).
func (r *room) messagesComeLate(t *testing.T) {
	late, latest, tooLate := r.last().encrypt(t, "late"), r.last().encrypt(t, "latest"), r.last().encrypt(t, "too late")
	for n := range 6 {
		a, _ := r.host().commit(t, nil)
		r.allHear(t, a.Seq)
		switch n {
		case 0:
			r.comes(t, r.last(), late, "late")
		case 4:
			r.comes(t, r.last(), latest, "latest")
		}
	}
	before := r.host().conversation(t).LastSeq
	if got := r.last().post(t, tooLate); !isRefused(got, http.StatusConflict, "past_epoch") {
		t.Errorf("a message of six epochs ago is answered %d %s", got.Status, got.Body)
	}
	if after := r.host().conversation(t).LastSeq; after != before {
		t.Errorf("a message of six epochs ago has number %d", after)
	}
	r.expectUnread(t, r.last(), tooLate, "of six epochs ago")
}

// messageComesEarly sends a message of the next epoch before its commit. The host refuses it, and
// the devices cannot read it. Once the commit has come, all read it (row 8).
func (r *room) messageComesEarly(t *testing.T) {
	s, before := r.last(), r.host().conversation(t)
	m := s.makeCommit(t, nil)
	s.device.Call(t, "merge", map[string]any{"group": s.group}, nil)
	early := s.encrypt(t, "early")
	var refusal struct{ Conversation struct{ Epoch int64 } }
	got := s.post(t, early)
	if got.Decode(t, &refusal); !isRefused(got, http.StatusConflict, "future_epoch") || refusal.Conversation.Epoch != before.Epoch {
		t.Errorf("a message of the next epoch is answered %d %s", got.Status, got.Body)
	}
	if after := r.host().conversation(t); after.LastSeq != before.LastSeq || after.Epoch != before.Epoch {
		t.Errorf("a message of the next epoch made the conversation %+v", after)
	}
	r.expectUnread(t, s, early, "of the next epoch")
	var a accepted
	if got := s.propose(t, m); got.Status != http.StatusCreated {
		t.Fatalf("the commit is answered %d %s", got.Status, got.Body)
	} else {
		got.Decode(t, &a)
	}
	s.known[m.Commit] = true
	r.allHear(t, a.Seq)
	r.comes(t, s, early, "early")
	expectAgreement(t, r.seats...)
}

// serversAreKilled kills each server during a commit, and restarts it. The repeated commit is
// accepted. Three messages that were encrypted before come in another order, the first one after
// a commit and a restart, the second one when the devices have restarted, too (row 7). After that
// none of them is taken or read again (row 6).
func (r *room) serversAreKilled(t *testing.T) {
	writer, written := r.last(), []string{}
	for _, text := range []string{"first", "second", "third"} {
		written = append(written, writer.encrypt(t, text))
	}
	taken := make([]accepted, 3)
	taken[2] = r.comes(t, writer, written[2], "third")
	var killed []*enginetest.Instance
	for _, s := range r.seats {
		if slices.Contains(killed, s.user.Home) {
			continue
		}
		killed = append(killed, s.user.Home)
		a := s.commitThroughKill(t, nil)
		r.allHear(t, a.Seq)
		if len(killed) == 1 {
			taken[0] = r.comes(t, writer, written[0], "first")
		}
	}
	for _, s := range r.seats {
		s.device.Call(t, "restart", map[string]any{}, nil)
	}
	taken[1] = r.comes(t, writer, written[1], "second")
	expectAgreement(t, r.seats...)
	for n, message := range written {
		r.expectTaken(t, writer, message, taken[n])
	}
	r.allHear(t, r.last().say(t, "still here").Seq)
	r.host().expectHeard(t, "still here")
}

// commitThroughKill kills the server of a seat during its commit, and restarts it. The repeated
// commit is accepted.
func (s *seat) commitThroughKill(t *testing.T, change map[string]any) (a accepted) {
	t.Helper()
	m := s.makeCommit(t, change)
	answered := make(chan enginetest.Answer)
	go func() { answered <- s.propose(t, m) }()
	s.user.Home.Kill()
	<-answered
	s.user.Home.Start(t)
	if !s.conclude(t, m, s.propose(t, m), &a) {
		t.Fatalf("the commit of %s is lost", s.name)
	}
	return a
}

// expectTaken checks that a message is neither taken nor read again. Its writer is told which
// number it has, and every other member that it is another's.
func (r *room) expectTaken(t *testing.T, writer *seat, message string, first accepted) {
	t.Helper()
	before := r.host().conversation(t).LastSeq
	got := writer.post(t, message)
	var again accepted
	if got.Decode(t, &again); again.Seq != first.Seq || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a message that has number %d is answered %d %s when it comes again", first.Seq, got.Status, got.Body)
	}
	for _, s := range r.seats {
		if s.user == writer.user {
			continue
		}
		if got := s.post(t, message); !isRefused(got, http.StatusConflict, "message_taken") {
			t.Errorf("another's message is answered %s with %d %s", s.name, got.Status, got.Body)
		}
	}
	if after := r.host().conversation(t).LastSeq; after != before {
		t.Errorf("a message that came again has number %d", after)
	}
	r.expectUnread(t, writer, message, "twice")
}

// oneIsRemoved removes a device, which cannot read later messages. If it was its actor's only
// device, the server refuses that actor.
func (r *room) oneIsRemoved(t *testing.T) {
	gone, staying := r.last(), r.seats[:len(r.seats)-1]
	a, _ := r.host().commit(t, map[string]any{"remove": []int{gone.state(t).Leaf}})
	secret := r.host().say(t, "without "+gone.name)
	isOut := !slices.ContainsFunc(staying, func(s *seat) bool { return s.user == gone.user })
	for _, s := range staying {
		s.catchUp(t, secret.Seq)
	}
	expectAgreement(t, staying...)
	for _, e := range r.host().log(t, a.Seq-1) {
		var done groupState
		err := gone.device.Try(t, "process", map[string]any{"group": gone.group, "message": e.Content}, &done)
		if e.Kind == "application" && err == nil || e.Kind == "commit" && (err != nil || done.IsActive) {
			t.Errorf("the removed device has of %s %d the state %+v: %v", e.Kind, e.Seq, done, err)
		}
	}
	if !isOut {
		return
	}
	enginetest.Eventually(t, gone.name+" hears that it is removed", func() bool {
		return gone.user.Ask(t, http.MethodGet, gone.path, nil).Status == http.StatusForbidden
	})
	for _, path := range []string{"", "/log", "/group-info"} {
		if got := gone.user.Ask(t, http.MethodGet, gone.path+path, nil); !isRefused(got, http.StatusForbidden, "not_member") {
			t.Errorf("%s%s is answered the removed member with %d %s", gone.path, path, got.Status, got.Body)
		}
	}
}
