package engine_test

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// Three members on two servers hold a conversation with a fourth member, who knows only the SWICG
// draft. Their clients share no code with the engine.
func TestRow26AMixedConversationWithTSMLS(t *testing.T) {
	t.Parallel()
	devices := enginetest.StartDevices(t)
	a, b := enginetest.StartTwo(t)
	alice, bob, carol := takeSeat(t, devices, a.CreateUser(t, "alice"), "alice's"), takeSeat(t, devices, a.CreateUser(t, "bob"), "bob's"), takeSeat(t, devices, b.CreateUser(t, "carol"), "carol's")
	r := &mixedRoom{room: room{seats: []*seat{alice, bob, carol}}, sam: newGuest(t, devices, "127.0.0.9", alice, bob, carol)}
	for _, chapter := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"all are added", r.allAreAdded},
		{"sam is added", r.samIsAdded},
		{"all talk", r.allTalk},
		{"sam spells it otherwise", r.samSpells},
		{"all commit", r.allCommit},
		{"the servers are killed", r.serversAreKilled},
		{"messages come again and in another order", r.messagesComeAgain},
		{"a message comes before its commit", r.messageComesEarly},
		{"two commits change places", r.commitsChangePlaces},
		{"a commit of sam wins", r.commitWins},
		{"a commit of sam loses", r.commitLoses},
		{"the conversation is reset", r.conversationIsReset},
		{"all talk in the next group", r.allTalk},
		{"all commit at once", r.allCommitAtOnce},
		{"the conversation is reset again", r.conversationIsReset},
		{"sam is removed", r.samIsRemoved},
	} {
		if !t.Run(chapter.name, chapter.tell) {
			t.FailNow()
		}
	}
}

// mixedRoom is a room that also has sam, who knows only the SWICG draft.
type mixedRoom struct {
	room
	sam *guest
}

// allCatchUp waits until the host's log has the given number, and lets all seats read up to it.
func (r *mixedRoom) allCatchUp(t *testing.T, seq int64) {
	t.Helper()
	enginetest.Eventually(t, "the host's log grows", func() bool { return r.host().conversation(t).LastSeq >= seq })
	r.allHear(t, seq)
}

// expectAll checks that sam has the same epoch and secret as the others.
func (r *mixedRoom) expectAll(t *testing.T) {
	t.Helper()
	expectAgreement(t, r.seats...)
	want := r.host().state(t)
	r.sam.hears(t, "of the epoch", func() bool { return r.sam.state(t).Epoch >= want.Epoch })
	if is := r.sam.state(t); is.Epoch != want.Epoch || is.Secret != want.Secret {
		t.Errorf("sam is in epoch %d with another secret than alice in %d", is.Epoch, want.Epoch)
	}
}

// packageOfSam lets a member claim sam's key package.
func (r *mixedRoom) packageOfSam(t *testing.T, by *seat) string {
	t.Helper()
	return claimPackage(t, by.user, string(r.sam.actor.ID)).Content
}

// samIsAdded lets carol add sam. carol's server sends the Welcome.
func (r *mixedRoom) samIsAdded(t *testing.T) {
	carol := r.last()
	a, _ := carol.commit(t, map[string]any{"add": []string{r.packageOfSam(t, carol)}})
	r.allCatchUp(t, a.Seq)
	r.sam.hears(t, "the Welcome", func() bool { return r.sam.group != "" })
	r.expectAll(t)
}

func (r *mixedRoom) allTalk(t *testing.T) {
	var want []string
	for _, s := range r.seats {
		r.allHear(t, s.say(t, "I am "+s.name).Seq)
		want = append(want, "I am "+s.name)
		r.sam.hears(t, s.name, func() bool { return len(r.sam.heard) == len(want) })
	}
	r.sam.expectHeard(t, want...)
	for _, s := range r.seats {
		s.heard = nil
	}
	next := r.host().conversation(t).LastSeq + 1
	r.sam.say(t, "I am sam")
	r.allCatchUp(t, next)
	for _, s := range r.seats {
		s.expectHeard(t, "I am sam")
	}
}

// sealed is a change of nothing, as a PrivateMessage.
var sealed = map[string]any{"isPrivate": true}

// commitSealed commits a change as a PrivateMessage. It tells the server which actors it removes.
func (s *seat) commitSealed(t *testing.T, change map[string]any, removed ...string) (a accepted) {
	t.Helper()
	args := map[string]any{"isPrivate": true}
	for name, v := range change {
		args[name] = v
	}
	m := s.makeCommit(t, args)
	m.Removed = removed
	if !s.conclude(t, m, s.propose(t, m), &a) {
		t.Fatalf("the commit of %s is refused", s.name)
	}
	return a
}

func (r *mixedRoom) allCommit(t *testing.T) {
	for _, s := range r.seats {
		r.allHear(t, s.commitSealed(t, nil).Seq)
		r.expectAll(t)
	}
	next := r.host().conversation(t).LastSeq + 1
	r.sam.send(t, r.sam.commit(t))
	r.allCatchUp(t, next)
	r.expectAll(t)
}

// serversAreKilled kills the servers of alice and carol, each during a commit. A message of alice's
// is on its way.
func (r *mixedRoom) serversAreKilled(t *testing.T) {
	for _, s := range []*seat{r.host(), r.last()} {
		words := "said by " + s.name + " before the end"
		heard := func() bool { return len(r.sam.heard) > 0 }
		if said := s.say(t, words); s != r.host() { // the host would tell a server that is down again after a minute
			r.allCatchUp(t, said.Seq)
			r.sam.hears(t, words, heard)
		}
		r.allCatchUp(t, s.commitThroughKill(t, sealed).Seq)
		r.expectAll(t)
		r.sam.hears(t, words, heard)
		r.expectHeardBy(t, s, words)
	}
}

// expectHeardBy checks that all but the sender have received one message, and nothing else.
func (r *mixedRoom) expectHeardBy(t *testing.T, sender *seat, words string) {
	t.Helper()
	for _, s := range append([]*seat{r.sam.seat}, r.seats...) {
		if s != sender {
			s.expectHeard(t, words)
		}
	}
}

// messagesComeAgain sends the second of two messages first, and then each again under another id.
// So it does with a commit and a message of the epoch before.
func (r *mixedRoom) messagesComeAgain(t *testing.T) {
	next := r.host().conversation(t).LastSeq + 2
	one, two := r.sam.encrypt(t, "one"), r.sam.encrypt(t, "two")
	for _, message := range []string{two, one, two, one} {
		r.sam.send(t, message)
	}
	r.allCatchUp(t, next)
	for _, s := range r.seats {
		s.expectHeard(t, "two", "one")
	}
	late := r.sam.encrypt(t, "late")
	commit := r.sam.commit(t)
	for _, message := range []string{commit, late, commit, late} {
		r.sam.send(t, message)
	}
	r.allCatchUp(t, next+2)
	for _, s := range r.seats {
		s.expectHeard(t, "late")
	}
	r.expectAll(t)
	if last := r.host().conversation(t).LastSeq; last != next+2 {
		t.Errorf("the log has %d entries, want %d", last, next+2)
	}
}

// commitWins lets sam's commit come before those that alice and carol made in the same epoch. They
// are refused, apply sam's commit and commit again. Then all read all.
func (r *mixedRoom) commitWins(t *testing.T) {
	late := []*seat{r.host(), r.last()}
	var commits []made
	for _, s := range late {
		commits = append(commits, s.makeCommit(t, sealed))
	}
	first := r.host().conversation(t).LastSeq + 1
	r.sam.send(t, r.sam.commit(t))
	enginetest.Eventually(t, "the host has put sam's commit in order", func() bool { return r.host().conversation(t).LastSeq >= first })
	for i, s := range late {
		if s.conclude(t, commits[i], s.propose(t, commits[i]), &accepted{}) {
			t.Errorf("%s ends an epoch that sam has ended", s.name)
		}
		r.allCatchUp(t, s.commitSealed(t, nil).Seq)
		r.expectAll(t)
	}
	if e := r.host().log(t, first-1); len(e) != 3 || e[0].Kind != "commit" || e[0].Epoch+2 != e[2].Epoch {
		t.Errorf("three commits stand in the log as %+v", e)
	}
	r.allTalk(t)
}

// messageComesEarly lets sam, who merges a commit before it sends it, send a message of the next
// epoch first. The members' servers keep it, and their devices read it once the commit has come
// (row 8). The host orders it then.
func (r *mixedRoom) messageComesEarly(t *testing.T) {
	before := r.host().conversation(t).LastSeq
	commit, early := r.sam.commit(t), r.sam.encrypt(t, "early")
	r.sam.send(t, early)
	enginetest.Eventually(t, "the message waits at the host", func() bool {
		return r.host().user.Home.Metric(t, `lightweb_mls_undecryptable_total{reason="future_epoch"}`) >= 1
	})
	for _, s := range r.others() {
		enginetest.Eventually(t, "the message of the next epoch for "+s.name, func() bool { return s.hasGot(t, early) })
		if err := s.device.Try(t, "process", map[string]any{"group": s.group, "message": early}, nil); err == nil {
			t.Errorf("%s reads a message of the next epoch", s.name)
		}
	}
	r.sam.send(t, commit)
	r.allCatchUp(t, before+2)
	r.expectAll(t)
	for _, s := range r.seats {
		s.expectHeard(t, "early")
	}
	r.sam.send(t, early) // nobody reads it twice
	r.sam.send(t, r.sam.encrypt(t, "after it"))
	r.allCatchUp(t, before+3)
	for _, s := range r.seats {
		s.expectHeard(t, "after it")
	}
	if last := r.host().conversation(t).LastSeq; last != before+3 {
		t.Errorf("the log has %d entries, want %d", last, before+3)
	}
}

// commitsChangePlaces lets sam's second commit come to the host before its first one.
func (r *mixedRoom) commitsChangePlaces(t *testing.T) {
	before := r.host().conversation(t).LastSeq
	first, second := r.sam.commit(t), r.sam.commit(t)
	r.sam.send(t, second)
	r.sam.send(t, r.sam.encrypt(t, "after both"))
	r.sam.send(t, first)
	r.allCatchUp(t, before+3)
	r.expectAll(t)
	for _, s := range r.seats {
		s.expectHeard(t, "after both")
	}
}

// commitLoses lets sam commit in an epoch that alice has ended. The other members continue.
// alice's events report that sam has forked.
func (r *mixedRoom) commitLoses(t *testing.T) {
	late := r.sam.commit(t)
	a := r.host().commitSealed(t, nil)
	r.sam.send(t, late)
	r.allHear(t, a.Seq)
	r.othersGoOn(t)
	if c := r.host().conversation(t); c.Epoch != a.Epoch || c.LastSeq != a.Seq+1 || c.Status != "active" {
		t.Errorf("after a commit that lost the conversation is %+v", c)
	}
	if n := r.countForks(t); n != 1 {
		t.Errorf("alice is told %d times that sam has forked", n)
	}
}

// countForks returns how often alice was told that sam has forked. Then her program may offer a
// reset.
func (r *mixedRoom) countForks(t *testing.T) (told int) {
	t.Helper()
	if err := r.host().user.Home.SQL(t, "lightweb_alice").QueryRow(`SELECT count(*) FROM event_outbox WHERE type = 'mls.recovery.reported' AND payload->>'reason' = 'forked'`).Scan(&told); err != nil {
		t.Fatal(err)
	}
	return told
}

// allCommitAtOnce lets alice, carol and sam commit in one epoch, at the same time. One commit wins.
// alice and carol commit again, and sam has forked unless it has won.
func (r *mixedRoom) allCommitAtOnce(t *testing.T) {
	rivals, forks, before := []*seat{r.host(), r.last()}, r.countForks(t), r.host().conversation(t)
	commits, answers := make([]made, len(rivals)), make([]enginetest.Answer, len(rivals))
	for i, s := range rivals {
		commits[i] = s.makeCommit(t, sealed)
	}
	ofSam := r.sam.commit(t)
	var at sync.WaitGroup
	for i, s := range rivals {
		at.Go(func() { answers[i] = s.propose(t, commits[i]) })
	}
	r.sam.send(t, ofSam)
	at.Wait()
	var last accepted
	hasWon := true // unless another has
	var lost []*seat
	for i, s := range rivals { // all of them before anybody hears a commit that may be its own
		if s.conclude(t, commits[i], answers[i], &accepted{}) {
			hasWon = false
		} else {
			lost = append(lost, s)
		}
	}
	for _, s := range lost {
		r.allHear(t, last.Seq) // the other one may have committed again
		last = s.commitSealed(t, nil)
	}
	r.allCatchUp(t, last.Seq)
	if r.host().log(t, before.LastSeq)[0].Content == ofSam != hasWon {
		t.Error("the log begins with another commit than the one that won")
	}
	if n := r.countForks(t) - forks; n != map[bool]int{true: 0, false: 1}[hasWon] {
		t.Errorf("sam has won: %v; alice is told %d times that sam has forked", hasWon, n)
	}
	if hasWon {
		r.expectAll(t)
		r.allTalk(t)
		return
	}
	r.othersGoOn(t)
}

// othersGoOn checks that the others share a group, in which sam can read nothing.
func (r *mixedRoom) othersGoOn(t *testing.T) {
	t.Helper()
	message := r.last().encrypt(t, "we go on")
	r.allHear(t, r.last().send(t, message).Seq)
	expectAgreement(t, r.seats...)
	for _, s := range r.seats[:2] {
		s.expectHeard(t, "we go on")
	}
	enginetest.Eventually(t, "it comes to sam", func() bool {
		return slices.ContainsFunc(r.sam.peer.Posted(), func(p peertest.Posted) bool { return bytes.Contains(p.Content, []byte(message)) })
	})
	if err := r.sam.device.Try(t, "process", map[string]any{"group": r.sam.group, "message": message}, nil); err == nil {
		t.Error("sam reads on, though its commit has lost")
	}
}

// conversationIsReset begins the next group on alice's device. The device adds all other devices
// again.
func (r *mixedRoom) conversationIsReset(t *testing.T) {
	host := r.host()
	var next struct{ GroupID string }
	host.user.Ask(t, http.MethodPost, host.path+"/reset", map[string]any{}).Decode(t, &next)
	var made struct{ GroupInfo string }
	host.group = next.GroupID
	host.device.Call(t, "create", map[string]any{"group": next.GroupID}, &made)
	if got := host.user.Ask(t, http.MethodPost, host.path+"/reset", map[string]any{"groupInfo": made.GroupInfo}); got.Status != http.StatusCreated {
		t.Fatalf("the next group is answered %d %s", got.Status, got.Body)
	}
	r.sam.seen = len(r.sam.peer.Posted()) // sam cannot read the last messages of the group that it has left
	r.sam.group = ""
	r.sam.showPackage(t)
	add := []string{r.packageOfSam(t, host)}
	for _, s := range r.others() {
		s.publish(t)
		add = append(add, publicPackages(t, s.user)...)
	}
	a, _ := host.commit(t, map[string]any{"add": add})
	for _, s := range r.others() {
		s.join(t)
	}
	r.allCatchUp(t, a.Seq)
	r.sam.hears(t, "the Welcome", func() bool { return r.sam.group == next.GroupID })
	r.expectAll(t)
}

// samIsRemoved lets alice remove sam. sam cannot read later messages.
func (r *mixedRoom) samIsRemoved(t *testing.T) {
	id := string(r.sam.actor.ID)
	a := r.host().commitSealed(t, map[string]any{"remove": []int{r.sam.state(t).Leaf}}, id)
	r.allHear(t, a.Seq)
	r.sam.hears(t, "of the removal", func() bool { return !r.sam.state(t).IsActive })
	message := r.host().encrypt(t, "without sam")
	r.allHear(t, r.host().send(t, message).Seq)
	if err := r.sam.device.Try(t, "process", map[string]any{"group": r.sam.group, "message": message}, nil); err == nil {
		t.Error("sam reads on")
	}
	expectAgreement(t, r.seats...)
	if c := r.host().conversation(t); slices.ContainsFunc(c.Members, func(m struct{ Actor, Role string }) bool { return m.Actor == id }) {
		t.Errorf("sam is a member of %+v", c)
	}
	// an unencrypted commit, because now all members use Lightweb
	b, _ := r.host().commit(t, nil)
	r.allHear(t, b.Seq)
	expectAgreement(t, r.seats...)
	if n := len(r.sam.peer.Posted()); n != r.sam.seen {
		t.Errorf("%d things more come to sam", n-r.sam.seen)
	}
}
