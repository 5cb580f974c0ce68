package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// seat is a device in a conversation, with the device's user.
type seat struct {
	user   *enginetest.User
	device *enginetest.Device
	name   string // the name of the device
	group  string
	path   string          // the address of the conversation on the user's server
	read   int64           // the device has read the log up to this number
	known  map[string]bool // messages that the device has sent or applied
	heard  []string        // plaintexts of other devices since the last expectHeard
}

func takeSeat(t *testing.T, devices *enginetest.Devices, u *enginetest.User, name string) *seat {
	t.Helper()
	return &seat{user: u, device: devices.Make(t, u.ID), name: name, known: map[string]bool{}}
}

// groupState is the state of a group on a device.
type groupState struct {
	Epoch    int64
	Members  map[string]string // the actor of each leaf
	Leaf     int
	Secret   string
	IsActive bool
}

func (s *seat) state(t *testing.T) (g groupState) {
	t.Helper()
	s.device.Call(t, "state", map[string]any{"group": s.group}, &g)
	return g
}

// publish publishes two key packages: one for a single claim and one of last resort.
func (s *seat) publish(t *testing.T) {
	t.Helper()
	var packages []any
	for _, isLast := range []bool{false, true} {
		var made struct{ Content string }
		s.device.Call(t, "keyPackage", map[string]any{}, &made)
		packages = append(packages, map[string]any{"deviceId": s.name, "content": made.Content, "lastResort": isLast})
	}
	if got := s.user.Ask(t, http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": packages}); got.Status != http.StatusCreated {
		t.Fatalf("the key packages of %s are answered %d %s", s.name, got.Status, got.Body)
	}
}

// publicPackages returns the key packages in a user's public collection. It leaves out those that
// are replaced after it has read the collection.
func publicPackages(t *testing.T, u *enginetest.User) (contents []string) {
	t.Helper()
	items, err := fetchDoc(t, fetchDoc(t, u.ID).Text("keyPackages")).IDs("items")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range items {
		got := enginetest.Fetch(t, string(id))
		if got.Status == http.StatusGone {
			continue
		}
		d, err := vocab.ParseDoc(got.Body)
		if err != nil {
			t.Fatalf("%s is answered %d %s: %v", id, got.Status, got.Body, err)
		}
		contents = append(contents, d.Text("content"))
	}
	return contents
}

// claimedPackage is a key package that a user has claimed.
type claimedPackage struct{ Content, Ciphersuite string }

// claimPackage claims the key packages of an actor. It fails the test unless there is just one.
func claimPackage(t *testing.T, by *enginetest.User, actor string) claimedPackage {
	t.Helper()
	var got struct{ Items []claimedPackage }
	answer := by.Ask(t, http.MethodPost, "/api/keypackages/claim", map[string]any{"actor": actor})
	if answer.Decode(t, &got); answer.Status != http.StatusOK || len(got.Items) != 1 {
		t.Fatalf("%d key packages of %s are claimed: %d %s", len(got.Items), actor, answer.Status, answer.Body)
	}
	return got.Items[0]
}

func fetchDoc(t *testing.T, url string) vocab.Doc {
	t.Helper()
	got := enginetest.Fetch(t, url)
	d, err := vocab.ParseDoc(got.Body)
	if got.Status != http.StatusOK || err != nil {
		t.Fatalf("%s is answered %d %s: %v", url, got.Status, got.Body, err)
	}
	return d
}

// begin makes a conversation with the device as its first member.
func (s *seat) begin(t *testing.T) {
	t.Helper()
	s.group = "urn:uuid:" + uuid.NewString()
	var made struct{ GroupInfo string }
	s.device.Call(t, "create", map[string]any{"group": s.group}, &made)
	got := s.user.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"groupInfo": made.GroupInfo})
	if got.Status != http.StatusCreated {
		t.Fatalf("the conversation is answered %d %s", got.Status, got.Body)
	}
	s.path = got.Header.Get("Location")
}

// join joins the conversation with the Welcome that waits for the device.
func (s *seat) join(t *testing.T) {
	t.Helper()
	w := s.takeWelcome(t)
	s.confirm(t, w, nil)
	s.enter(t, w.ConversationID)
}

// welcome is a Welcome that waits for a device.
type welcome struct{ ID, ConversationID, Welcome string }

// takeWelcome lets the device join the group of the one Welcome that waits for it.
func (s *seat) takeWelcome(t *testing.T) welcome {
	t.Helper()
	var all struct{ Items []welcome }
	enginetest.Eventually(t, "a Welcome for "+s.name, func() bool {
		s.user.Ask(t, http.MethodGet, "/api/welcomes?device="+s.name, nil).Decode(t, &all)
		return len(all.Items) > 0
	})
	if len(all.Items) != 1 {
		t.Fatalf("%d Welcomes wait for %s", len(all.Items), s.name)
	}
	var joined struct{ Group string }
	s.device.Call(t, "join", map[string]any{"welcome": all.Items[0].Welcome}, &joined)
	s.group = joined.Group
	return all.Items[0]
}

// confirm tells the server that the device has joined by a Welcome.
func (s *seat) confirm(t *testing.T, w welcome, body any) {
	t.Helper()
	if got := s.user.Ask(t, http.MethodPost, "/api/welcomes/"+w.ID+"/confirm", body); got.Status != http.StatusNoContent {
		t.Fatalf("the Welcome of %s is confirmed with %d %s", s.name, got.Status, got.Body)
	}
}

// enter begins to read a conversation that the device has joined.
func (s *seat) enter(t *testing.T, id string) {
	t.Helper()
	s.path = "/api/conversations/" + id
	s.read = s.conversation(t).LastSeq // earlier entries are not for this device
}

// conversation is a conversation as the server shows it.
type conversation struct {
	GroupID, Status string
	Generation      int32
	Epoch, LastSeq  int64
	Unread          int
	Members         []struct{ Actor, Role string }
}

func (s *seat) conversation(t *testing.T) (c conversation) {
	t.Helper()
	got := s.user.Ask(t, http.MethodGet, s.path, nil)
	if got.Status != http.StatusOK {
		t.Fatalf("%s of %s is answered %d %s", s.path, s.name, got.Status, got.Body)
	}
	got.Decode(t, &c)
	return c
}

// entry is an entry of a conversation's log.
type entry struct {
	Seq, Epoch int64
	Kind       string
	Content    string
}

// catchUp reads the log up to a number and applies the new entries.
func (s *seat) catchUp(t *testing.T, to int64) {
	t.Helper()
	enginetest.Eventually(t, fmt.Sprintf("entry %d of the log, for %s", to, s.name), func() bool {
		for _, e := range s.log(t, s.read) {
			s.apply(t, e)
			s.read = e.Seq
		}
		return s.read >= to
	})
}

func (s *seat) log(t *testing.T, after int64) []entry {
	t.Helper()
	got := s.user.Ask(t, http.MethodGet, fmt.Sprintf("%s/log?after=%d", s.path, after), nil)
	var page struct{ Items []entry }
	if got.Decode(t, &page); got.Status != http.StatusOK {
		t.Fatalf("the log is answered %s with %d %s", s.name, got.Status, got.Body)
	}
	return page.Items
}

// hasGot reports whether a message is among those that came for the user in any order.
func (s *seat) hasGot(t *testing.T, message string) bool {
	t.Helper()
	for after := int64(0); ; {
		var page struct {
			Items []struct {
				Number  int64
				Content string
			}
			More bool
		}
		got := s.user.Ask(t, http.MethodGet, fmt.Sprintf("/api/mls/messages?after=%d", after), nil)
		if got.Decode(t, &page); got.Status != http.StatusOK {
			t.Fatalf("the messages are answered %s with %d %s", s.name, got.Status, got.Body)
		}
		for _, m := range page.Items {
			if after = m.Number; m.Content == message {
				return true
			}
		}
		if !page.More {
			return false
		}
	}
}

// apply lets the device process a message of another device, once.
func (s *seat) apply(t *testing.T, e entry) {
	t.Helper()
	if s.known[e.Content] {
		return
	}
	s.known[e.Content] = true
	var done struct {
		groupState
		Plaintext string
	}
	if err := s.device.Try(t, "process", map[string]any{"group": s.group, "message": e.Content}, &done); err != nil {
		t.Fatalf("%s cannot apply %s %d of epoch %d: %v", s.name, e.Kind, e.Seq, e.Epoch, err)
	}
	if e.Kind == "application" {
		s.heard = append(s.heard, done.Plaintext)
	} else if e.Kind == "commit" && done.IsActive && done.Epoch != e.Epoch+1 {
		t.Errorf("after the commit of epoch %d %s is in epoch %d", e.Epoch, s.name, done.Epoch)
	}
}

// accepted is the answer to a commit or a message.
type accepted struct{ Seq, Epoch int64 }

func (s *seat) encrypt(t *testing.T, plaintext string) (message string) {
	t.Helper()
	var made struct{ Message string }
	s.device.Call(t, "encrypt", map[string]any{"group": s.group, "plaintext": plaintext}, &made)
	return made.Message
}

func (s *seat) post(t *testing.T, message string) enginetest.Answer {
	t.Helper()
	s.known[message] = true
	return s.user.Ask(t, http.MethodPost, s.path+"/messages", map[string]any{"message": message})
}

// send sends a message. It fails the test unless the server accepts the message.
func (s *seat) send(t *testing.T, message string) (a accepted) {
	t.Helper()
	got := s.post(t, message)
	if got.Status != http.StatusCreated {
		t.Fatalf("a message of %s is answered %d %s", s.name, got.Status, got.Body)
	}
	got.Decode(t, &a)
	return a
}

// say encrypts a text and sends it to the other members.
func (s *seat) say(t *testing.T, text string) accepted {
	t.Helper()
	return s.send(t, s.encrypt(t, text))
}

// made is a commit that the server has not accepted yet.
type made struct {
	Commit    string   `json:"commit"`
	GroupInfo string   `json:"groupInfo"`
	Welcomes  []string `json:"welcomes"`
	Removed   []string `json:"removed,omitempty"` // only for a commit in a PrivateMessage
	key       string
}

func (s *seat) makeCommit(t *testing.T, change map[string]any) made {
	t.Helper()
	args := map[string]any{"group": s.group}
	for name, v := range change {
		args[name] = v
	}
	m := made{key: uuid.NewString()}
	s.device.Call(t, "commit", args, &m)
	return m
}

func (s *seat) propose(t *testing.T, m made) enginetest.Answer {
	t.Helper()
	return s.user.AskOnce(t, http.MethodPost, s.path+"/commits", m.key, m)
}

// commit commits a change. If another commit came first, it applies the missing entries and tries
// again. It returns how often its commit was refused.
func (s *seat) commit(t *testing.T, change map[string]any) (a accepted, refused int) {
	t.Helper()
	for ; ; refused++ {
		m := s.makeCommit(t, change)
		if s.conclude(t, m, s.propose(t, m), &a) {
			return a, refused
		}
	}
}

// conclude merges a commit that was accepted. If the commit was refused, it applies the missing
// entries and returns false.
func (s *seat) conclude(t *testing.T, m made, got enginetest.Answer, a *accepted) bool {
	t.Helper()
	switch got.Status {
	case http.StatusCreated:
		got.Decode(t, a)
		s.known[m.Commit] = true
		s.device.Call(t, "merge", map[string]any{"group": s.group}, nil)
		return true
	case http.StatusConflict:
		var problem struct {
			Error        string
			Conversation struct {
				Epoch   int64
				Missing []entry
			}
		}
		got.Decode(t, &problem)
		for _, e := range problem.Conversation.Missing {
			s.apply(t, e)
		}
		if now := s.state(t).Epoch; problem.Error != "epoch_conflict" || now != problem.Conversation.Epoch {
			t.Fatalf("after %s %s is in epoch %d", got.Body, s.name, now)
		}
		return false
	}
	t.Fatalf("a commit of %s is answered %d %s", s.name, got.Status, got.Body)
	return false
}

// expectHeard checks the plaintexts that the seat has received since the last call.
func (s *seat) expectHeard(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.heard, want) {
		t.Errorf("%s has heard %q, want %q", s.name, s.heard, want)
	}
	s.heard = nil
}

// expectAgreement checks that all seats have the same secret, and that each is in the epoch that
// its server reports.
func expectAgreement(t *testing.T, seats ...*seat) {
	t.Helper()
	first := seats[0].state(t)
	for _, s := range seats {
		if is, c := s.state(t), s.conversation(t); is.Secret != first.Secret || is.Epoch != c.Epoch {
			t.Errorf("%s is in epoch %d with another secret or server than %s in %d; the server says %d", s.name, is.Epoch, seats[0].name, first.Epoch, c.Epoch)
		}
	}
}

func isRefused(got enginetest.Answer, status int, code string) bool {
	return got.Status == status && strings.Contains(string(got.Body), `"error":"`+code+`"`)
}
