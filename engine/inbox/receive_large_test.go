package inbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// correspond adds alice's device to a group of p:/dave's and lets the device confirm the
// conversation.
func correspond(t *testing.T) *hosted {
	t.Helper()
	h := newHosted(t)
	h.grow()
	h.sends(mine, "Welcome", h.group.Welcome(h.device))
	h.sends(mine, "PrivateMessage", h.group.Message())
	if _, err := h.DB(t, h.Alice).ExecContext(t.Context(), `UPDATE conversations SET confirmed = true`); err != nil {
		t.Fatal(err)
	}
	return h
}

// large sends a message of 2 MiB to alice. The parameter from names its sender. large returns the
// payer whose budget the reading of the body was charged to, or "" if the body was not read.
func (h *hosted) large(from, inbox string) (payer string, err error) {
	h.Helper()
	by, me := h.Long(from), h.Long("us:/alice")
	object := vocab.Doc{"type": "PrivateMessage", "id": by + "/objects/" + uuid.NewString(), "attributedTo": by, "to": []any{me}, "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(h.group.LongMessage(2 << 20))}
	raw := vocab.Doc{"@context": vocab.ActivityContext(), "type": "Create", "id": by + "/activities/" + uuid.NewString(), "actor": by, "to": []any{me}, "object": object}.JSON()
	r := h.Actor(from).Post(h.TB, h.Long(inbox), h.MediaType, raw, h.Dialect, h.Now())
	u, _ := h.Local.InboxOwner(h.ID(inbox))
	err = h.Inbox.ReceiveLarge(h.Context(), r, u, func(p string) ([]byte, error) {
		payer = p
		return raw, nil
	})
	return payer, err
}

// All places for large activities are taken, and all connections to alice's database but one. A
// large message for alice waits, and the last connection is free for others meanwhile.
func TestALargeMessageThatWaitsHoldsNoConnection(t *testing.T) {
	h := correspond(t)
	free := sync.OnceFunc(h.Inbox.TakeLarge())
	defer free()
	var reading sync.WaitGroup
	defer reading.Wait()
	reads, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	const others = 3 // of the four connections that one database may have
	for range others {
		reading.Go(func() {
			if err := h.Store.Read(t.Context(), h.Alice, func(context.Context, *user.Tx) error {
				reads <- struct{}{}
				<-end
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		<-reads
	}
	answer := make(chan error, 1)
	go func() {
		_, err := h.large("p:/dave", mine)
		answer <- err
	}()
	eventually(t, "the message is queued", func() bool { return h.Inbox.Waiting() == 1 })
	for range 20 { // the writer comes between two of them if it wants a connection
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := h.Store.Read(ctx, h.Alice, func(context.Context, *user.Tx) error { return nil })
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	free()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	h.want("messages", `SELECT count(*) FROM mls_inbox WHERE octet_length(content) > 2 << 20`, "1")
}

func TestALargeMessageIsPaidForByItsSendersDomain(t *testing.T) {
	h := correspond(t)
	for _, inbox := range []string{mine, "us:/inbox"} {
		if payer, err := h.large("p:/dave", inbox); err != nil || payer != policy.RegistrableDomain(h.ID("p:/dave").Host()) {
			t.Errorf("to %s: paid by %q, %v", inbox, payer, err)
		}
	}
	h.want("messages", `SELECT count(*) FROM mls_inbox WHERE octet_length(content) > 2 << 20`, "2")
}

func TestWhoMaySendLargeMessages(t *testing.T) {
	h := correspond(t)
	refused := func(what, from, inbox string, kind fault.Kind) {
		t.Helper()
		if payer, err := h.large(from, inbox); fault.KindOf(err) != kind || payer != "" {
			t.Errorf("%s: paid by %q, %v, want it refused and nothing read", what, payer, err)
		}
	}
	refused("an actor that nobody knows", "p:/mallory", mine, fault.TooLarge)
	if n := h.Asked("p:/mallory"); n != 0 {
		t.Errorf("mallory's server is asked %d times", n)
	}
	h.MustSend("p:/carol", mine, `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`)
	refused("a stranger who is known", "p:/carol", mine, fault.TooLarge)
	refused("the same, to all", "p:/carol", "us:/inbox", fault.TooLarge)
	h.Follows("p:/carol")
	if _, err := h.large("p:/carol", mine); err != nil {
		t.Errorf("an actor that alice follows: %v", err)
	}
	h.Down(t, h.Alice)
	refused("while nobody can tell", "p:/dave", mine, fault.Unavailable)
	refused("the same, to all", "p:/dave", "us:/inbox", fault.Unavailable)
	h.Up(t, h.Alice)
	h.Block(h.ID("p:/dave").Host())
	refused("a host that is blocked", "p:/dave", mine, fault.TooLarge)
}

func TestSendersOfManyLargeMessagesAreBounded(t *testing.T) {
	h := correspond(t)
	broken := errors.New("the body breaks off")
	r := h.Actor("p:/dave").Post(t, h.Long(mine), h.MediaType, []byte("{}"), h.Dialect, h.Now())
	send := func() error {
		return h.Inbox.ReceiveLarge(t.Context(), r, h.Alice, func(string) ([]byte, error) { return nil, broken })
	}
	err, read := send(), 0
	for ; errors.Is(err, broken) && read < 1000; err = send() {
		read++
	}
	if fault.KindOf(err) != fault.RateLimited || read < policy.LargeBodies.Rate.Burst {
		t.Errorf("after %d bodies: %v", read, err)
	}
}
