package server

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

// getObject shows one object as the user may see it.
func (s *clientAPI) getObject(a *answer, r *http.Request, _ httprouter.Params) error {
	q, err := s.readThreadQuery(a, r, "uri")
	if err != nil {
		return err
	}
	entry, err := s.threads.Object(r.Context(), q.Query)
	s.tellLookups(a, q.payer)
	if err != nil {
		return err
	}
	return a.sendJSON(r, entry)
}

// getThread shows an object with its ancestors in the thread and its answers.
func (s *clientAPI) getThread(a *answer, r *http.Request, _ httprouter.Params) error {
	q, err := s.readThreadQuery(a, r, "uri", "backfill")
	if err != nil {
		return err
	}
	if q.given.Has("backfill") {
		if q.Fill, err = strconv.ParseBool(q.given.Get("backfill")); err != nil {
			return fault.New(fault.Invalid, "backfill is true or false").WithCode("bad_query")
		}
	}
	if q.Fill && q.Assistant {
		return refuseScope(a, instance.ScopeRead) // no other server is asked on behalf of an LLM engine
	}
	found, err := s.threads.Thread(r.Context(), q.Query)
	s.tellLookups(a, q.payer)
	if err != nil {
		return err
	}
	return a.sendJSON(r, found)
}

// threadQuery is a request for an object or its thread.
type threadQuery struct {
	thread.Query
	payer string
	given url.Values
}

// readThreadQuery reads which object a user's client asks for.
func (s *clientAPI) readThreadQuery(a *answer, r *http.Request, known ...string) (q threadQuery, err error) {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return q, err
	}
	if q.given, err = readQuery(r, known...); err != nil {
		return q, err
	}
	id, err := vocab.ParseID(q.given.Get("uri"))
	if err != nil || id == "" {
		return q, fault.New(fault.Invalid, "ask for an object by its uri").WithCode("bad_query")
	}
	q.Query, q.payer = thread.Query{User: t.User, URI: id, Assistant: isAssistantReader(t)}, payerOf(t)
	return q, nil
}
