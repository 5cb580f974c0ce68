package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/search"
)

const (
	usualFound = 20
	mostFound  = 50
)

// getSearch serves the objects and actors that match the query and that the user may see.
func (s *clientAPI) getSearch(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "q", "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q, usualFound, mostFound)
	if err != nil {
		return err
	}
	ok, after := s.budget.Allow(payerOf(t))
	a.tellQuotas(s.budget.Quota(quotaOfSearches, payerOf(t)))
	if !ok {
		return fault.New(fault.RateLimited, "your programs search too often").WithCode("rate_limited").After(after)
	}
	page, err := s.search.Search(r.Context(), search.Query{User: t.User, Text: q.Get("q"), Cursor: q.Get("cursor"), Limit: limit, Assistant: isAssistantReader(t)})
	if err != nil {
		return err
	}
	linkNext(a, r, q, page.Next)
	return a.sendJSON(r, page)
}
