package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

// getObject shows one object as the user may see it.
func (s *clientAPI) getObject(a *answer, r *http.Request, _ httprouter.Params) error {
	q, err := s.readThreadQuery(a, r)
	if err != nil {
		return err
	}
	entry, err := s.threads.Object(r.Context(), q)
	if err != nil {
		return err
	}
	return a.sendJSON(r, entry)
}

// getThread shows an object with what it answers and what answers it.
func (s *clientAPI) getThread(a *answer, r *http.Request, _ httprouter.Params) error {
	q, err := s.readThreadQuery(a, r)
	if err != nil {
		return err
	}
	found, err := s.threads.Thread(r.Context(), q)
	if err != nil {
		return err
	}
	return a.sendJSON(r, found)
}

// readThreadQuery reads which object a program of a user's asks for.
func (s *clientAPI) readThreadQuery(a *answer, r *http.Request) (thread.Query, error) {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return thread.Query{}, err
	}
	q, err := readQuery(r, "uri")
	if err != nil {
		return thread.Query{}, err
	}
	id, err := vocab.ParseID(q.Get("uri"))
	if err != nil || id == "" {
		return thread.Query{}, fault.New(fault.Invalid, "ask for an object by its uri").WithCode("bad_query")
	}
	return thread.Query{User: t.User, URI: id, Assistant: isAssistantReader(t)}, nil
}
