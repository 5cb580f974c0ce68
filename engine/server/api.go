package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/search"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	apiPrefix = "/api/"
	apiJSON   = "application/json"
	maxAction = 1 << 20 // bytes of one dispatched action
	maxKey    = 64      // characters of an Idempotency-Key
)

// clientAPI serves users' clients.
type clientAPI struct {
	*access
	owners   *user.Databases // users' databases, for requests of the users themselves
	profiles Profiles
	feed     *feed.Reader
	threads  *thread.Reader
	outbox   Outbox
	bodies   *policy.Pool // limits the memory for the bodies of actions, and for uploaded pictures
	lookups  *policy.Limiter
	search   *search.Searcher
	budget   *policy.Limiter // limits searches
	logins   *logins
	version  string
}

// wrapAPI adds the headers of the client API to the responses of h. The responses belong to one
// user, so a shared cache must not store them.
func (s *clientAPI) wrapAPI(h handle) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		a.setCache(cacheOwn)
		a.addVary("Authorization")
		a.Header().Set("Lightweb-Version", s.version)
		return h(a, r, p)
	}
}

// getFeed serves a page of a feed.
func (s *clientAPI) getFeed(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return err
	}
	u := t.User
	q, err := readQuery(r, "feed", "limit", "cursor", "unread")
	if err != nil {
		return err
	}
	name := feed.Main
	if q.Has("feed") {
		name = q.Get("feed")
	}
	if name == feed.Requests && !slices.Contains(t.Scopes, instance.ScopeRead) {
		return refuseScope(a, instance.ScopeRead) // an LLM engine does not read what strangers write in private
	}
	limit, err := limitOf(q, feed.DefaultLimit, feed.MaxLimit)
	if err != nil {
		return err
	}
	page, err := s.feed.Page(r.Context(), u, name, q.Get("cursor"), limit)
	if err != nil {
		return err
	}
	if err := s.addReading(r, u, name, &page); err != nil {
		return err
	}
	linkNext(a, r, q, page.Next)
	a.sendTagged(r, apiJSON, page.JSON())
	return nil
}

// addReading adds the user's reading position and the number of unread entries to a page of a
// feed, if the request asks for them.
func (s *clientAPI) addReading(r *http.Request, u vocab.Username, name string, page *feed.Page) error {
	switch asked := r.URL.Query(); {
	case !asked.Has("unread") || asked.Get("unread") == "false":
		return nil
	case asked.Get("unread") != "true":
		return fault.New(fault.Invalid, "unread is true or false").WithCode("bad_query")
	}
	reading, err := s.feed.Reading(r.Context(), u, name)
	page.Unread, page.ReadUpTo = &reading.Unread, reading.UpTo
	return err
}

// getFeedEntry serves one entry of a feed.
func (s *clientAPI) getFeedEntry(a *answer, r *http.Request, p httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	id, err := parseID(p, "entry")
	if err != nil {
		return err
	}
	item, err := s.feed.Item(r.Context(), t.User, id, slices.Contains(t.Scopes, instance.ScopeRead))
	if err != nil {
		return err
	}
	a.sendTagged(r, apiJSON, item.JSON())
	return nil
}

func (a *answer) sendJSON(r *http.Request, v any) error {
	body, err := vocab.Marshal(v)
	if err != nil {
		return err
	}
	a.sendTagged(r, apiJSON, body)
	return nil
}

// parseID returns the UUID that a path names.
func parseID(p httprouter.Params, name string) (uuid.UUID, error) {
	id, err := uuid.Parse(p.ByName(name))
	if err != nil || id.String() != p.ByName(name) {
		return uuid.Nil, errNothing
	}
	return id, nil
}

// readQuery returns the query parameters of the request. It refuses a parameter that is unknown
// or given twice, so that a client learns of its mistake.
func readQuery(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "the query is malformed", err).WithCode("bad_query")
	}
	for name, values := range q {
		if !slices.Contains(known, name) || len(values) != 1 {
			return nil, fault.New(fault.Invalid, "the query holds a parameter that is not known here, or one twice").WithCode("bad_query")
		}
	}
	return q, nil
}

// dispatched is the answer to an action.
type dispatched struct {
	Success       bool        `json:"success"`
	ActivityID    vocab.ID    `json:"activityId,omitempty"`
	ObjectID      vocab.ID    `json:"objectId,omitempty"`      // the object that was made, changed or referred to, unless it is an actor
	Unresolved    []string    `json:"unresolved,omitempty"`    // handles in the text for which no actor was found
	FederationJob *outbox.Job `json:"federationJob,omitempty"` // the fan-out; absent if nothing is delivered

	// Accepted has the place of a sent ciphertext in its conversation; nil if none was sent.
	Accepted     *conversation.Accepted `json:"accepted,omitempty"`
	Conversation uuid.UUID              `json:"conversationId,omitzero"`
}

// postActivity dispatches an action in the user's name.
func (s *clientAPI) postActivity(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite, instance.ScopeLLM)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	cause, err := readCause(r)
	if err != nil {
		return err
	}
	action, err := s.readAction(a, r, t.User)
	if err != nil {
		return err
	}
	result, err := s.outbox.Dispatch(r.Context(), outbox.Dispatch{User: t.User, Token: t.ID, Assistant: isAssistant(t), Action: action, IdempotencyKey: key, CausedBy: cause})
	if isAssistant(t) {
		s.tellAttempts(a, r, t)
	}
	if errors.Is(err, outbox.ErrScope) {
		return refuseScope(a, instance.ScopeWrite)
	}
	if err != nil {
		return err
	}
	body, err := vocab.Marshal(dispatched{true, result.ActivityID, result.ObjectID, result.Unresolved, result.Job, result.Accepted, result.Conversation})
	if err != nil {
		return err
	}
	if result.ActivityID != "" {
		a.Header().Set("Location", string(result.ActivityID))
	}
	if result.Replayed {
		a.Header().Set("Idempotent-Replayed", "true")
	}
	a.send(http.StatusCreated, apiJSON, body)
	return nil
}

// isAssistant reports whether a token has no write access. If such a token may dispatch actions,
// it belongs to the LLM engine, which is trusted less than its user.
func isAssistant(t instance.Token) bool { return !t.Has(instance.ScopeWrite) }

// idempotencyKey returns the Idempotency-Key of the request, or an empty text if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	unprintable := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxKey || strings.ContainsFunc(keys[0], unprintable) {
		return "", fault.New(fault.Invalid, "an Idempotency-Key has 1 to 64 printable characters").WithCode("bad_idempotency_key")
	}
	return keys[0], nil
}

// readCause returns the eventId of the event that caused the request, or uuid.Nil if the request
// names none.
func readCause(r *http.Request) (uuid.UUID, error) {
	given := r.Header.Values("Lightweb-Caused-By")
	if len(given) == 0 {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(given[0])
	if err != nil || id == uuid.Nil || len(given) > 1 || id.String() != given[0] {
		return uuid.Nil, fault.New(fault.Invalid, "Lightweb-Caused-By is the eventId of an event, such as 019aa7d4-5e2c-7c1b-9a53-1f2e3d4c5b6a").WithCode("bad_cause")
	}
	return id, nil
}

// readAction reads the action that a user wants. The body is an object with no other members
// than action and params. The body is charged to the user, not to the client's address.
func (s *clientAPI) readAction(a *answer, r *http.Request, u vocab.Username) (pipeline.Action, error) {
	var none pipeline.Action
	body, err := readJSON(a, r, s.bodies, u.String(), maxAction)
	if err != nil {
		return none, err
	}
	d, err := vocab.ParseDoc(body)
	if err != nil {
		return none, err
	}
	for name := range d {
		if name != "action" && name != "params" {
			return none, fault.New(fault.Unprocessable, "only action and params are taken").WithCode("unknown_parameter").At(queryPointer(name))
		}
	}
	name := d.Text("action")
	if name == "" {
		return none, fault.New(fault.Unprocessable, "an action must be named").WithCode("unknown_action").At("/action")
	}
	given, ok := d["params"].(vocab.Doc)
	if !ok && d["params"] != nil {
		return none, fault.New(fault.Unprocessable, "params must be an object").WithCode("invalid_parameter").At("/params")
	}
	if given == nil {
		given = vocab.Doc{}
	}
	return pipeline.Action{Name: name, Params: given.JSON()}, nil
}

// queryPointer returns the JSON Pointer to a member of the body (RFC 6901 §3).
func queryPointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name[:min(len(name), 64)])
}
