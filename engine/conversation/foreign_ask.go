package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Hosts sends requests to the hosts of conversations, and requests for key packages to other
// servers.
type Hosts interface {
	Ask(ctx context.Context, q transport.Question) (*transport.Reply, error)
	Get(ctx context.Context, r transport.Request) (*transport.Response, error)
}

// Keys returns the keys with which users sign requests.
type Keys interface {
	Keys(u vocab.Username) (transport.Keys, error)
}

// maxReply limits the bytes of a host's answer. A page of a log in base64 is not longer.
const maxReply = 8 << 20

// unreachableWait is the time that a client waits before a retry if a host did not answer.
const unreachableWait = 30 * time.Second

// ask sends a request to the host of a conversation, signed with the user's keys, and decodes a
// successful answer into the parameter into. A refusal is returned as a fault of this server,
// with a bounded text. The result "replayed" reports whether the host repeated its answer to an
// earlier request with the same key.
func (m *Members) ask(ctx context.Context, u vocab.Username, c *user.Conversation, method, path, key string, body, into any) (replayed bool, err error) {
	q := transport.Question{Method: method, URL: c.URI + vocab.ID(path), IdempotencyKey: key, Limit: maxReply}
	if body != nil {
		if q.Body, err = vocab.Marshal(body); err != nil {
			return false, err
		}
	}
	if q.As, err = m.Keys.Keys(u); err != nil {
		return false, fault.Wrap(fault.Unavailable, "the user's keys cannot be read", err).WithCode("keys_unavailable").WithHint(fault.Hint(err))
	}
	if host, err := m.People.Known(ctx, c.Host); err == nil && host != nil {
		q.Ed25519 = host.TakesEd25519()
	}
	reply, err := m.Hosts.Ask(ctx, q)
	switch {
	case err != nil:
		return false, unreachable(err)
	case reply.Status == http.StatusGone, reply.Status == http.StatusNotFound:
		if err := m.closeIfGone(ctx, u, c, q, reply.Status); err != nil {
			return false, err
		}
		return false, refusalOf(reply)
	case reply.Status/100 != 2:
		return false, refusalOf(reply)
	}
	if err := json.Unmarshal(reply.Body, into); err != nil {
		return false, badReply(err)
	}
	return reply.Replayed, nil
}

// unreachable returns the error for a host that was not asked, did not answer, or answered with a
// status that is not in the map refusals.
func unreachable(err error) error {
	switch fault.KindOf(err) {
	case fault.Forbidden, fault.Busy: // the policy refuses the host, or the client has gone
		return err
	}
	return fault.Wrap(fault.Unavailable, "the host of the conversation does not answer; keep what you have and send it again with the same key", err).WithCode("host_unreachable").After(unreachableWait)
}

func badReply(err error) error {
	return fault.Wrap(fault.Protocol, "the host of the conversation answered what makes no sense", err).WithCode("host_answer")
}

// refusals maps the status of a host's refusal to the kind of the fault that is returned for it.
var refusals = map[int]fault.Kind{
	http.StatusBadRequest: fault.Invalid, http.StatusForbidden: fault.Forbidden, http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict,
	http.StatusRequestEntityTooLarge: fault.TooLarge, http.StatusUnprocessableEntity: fault.Unprocessable, http.StatusTooManyRequests: fault.RateLimited,
}

// problemSaid is the part of a problem+json document that is read.
type problemSaid struct {
	Type         string `json:"type"`
	Detail       string `json:"detail"`
	Conversation *struct {
		GroupID    string       `json:"groupId"`
		Generation int32        `json:"generation"`
		Epoch      int64        `json:"epoch"`
		Status     string       `json:"status"`
		ResetGroup string       `json:"resetGroupId"`
		Winner     *winnerSaid  `json:"winner"`
		Missing    []loggedSaid `json:"missing"`
	} `json:"conversation"`
}

// winnerSaid names the commit that ended the epoch of a refused one.
type winnerSaid struct {
	Seq int64 `json:"seq"`
}

// loggedSaid is an entry of a log in a host's answer.
type loggedSaid struct {
	Seq        int64     `json:"seq"`
	Generation int32     `json:"generation"`
	Epoch      int64     `json:"epoch"`
	Kind       string    `json:"kind"`
	Sender     string    `json:"sender"`
	Content    []byte    `json:"content"`
	At         time.Time `json:"at"`
}

var codeForm = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// refusalOf translates a refusal of a host into a fault or a Conflict of this server.
func refusalOf(r *transport.Reply) error {
	if r.Status == http.StatusGone { // transport does not read the body of such an answer
		return fault.New(fault.Gone, "the host of the conversation says that it is gone")
	}
	kind, is := refusals[r.Status]
	if !is {
		return unreachable(errors.New("status " + http.StatusText(r.Status)))
	}
	var p problemSaid
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return badReply(err)
	}
	code := strings.ReplaceAll(p.Type[strings.LastIndexByte(p.Type, '/')+1:], "-", "_")
	if !codeForm.MatchString(code) {
		code = "host_refused"
	}
	refusal := fault.New(kind, "the other server refused it: "+vocab.OneLine(p.Detail[:min(len(p.Detail), 200)])).WithCode(code)
	if kind == fault.RateLimited {
		refusal = refusal.After(max(r.RetryAfter, time.Second))
	}
	if s := p.Conversation; s != nil && kind == fault.Conflict {
		c := &Conflict{GroupID: groupName([]byte(s.GroupID)), Generation: s.Generation, Epoch: s.Epoch, Status: statusSaid(s.Status), Reset: groupName([]byte(s.ResetGroup)), Missing: readLogged(s.Missing), err: refusal}
		c.HasWinner = s.Winner != nil && len(c.Missing) > 0 && c.Missing[0].Seq == s.Winner.Seq
		return c
	}
	return refusal
}

// statusSaid returns the status that a host sent, or active if it is unknown.
func statusSaid(s string) string {
	if s != user.StatusResetPending && s != user.StatusClosed {
		return user.StatusActive
	}
	return s
}

// readLogged reads entries of a log, up to the first invalid one.
func readLogged(said []loggedSaid) (all []user.LogEntry) {
	for _, s := range said[:min(len(said), mostLogged)] {
		e, err := s.read()
		if err != nil {
			break
		}
		all = append(all, user.LogEntry{Seq: s.Seq, Generation: s.Generation, Epoch: e.epoch, Kind: e.kind, Sender: e.sender, Content: s.Content, Hash: hashOf(s.Content), At: s.At})
	}
	return all
}
