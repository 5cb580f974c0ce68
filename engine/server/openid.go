package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/oidc"
)

// openIDLogins makes sessions for users who sign in at an OpenID provider.
type openIDLogins struct {
	*clientAPI
	provider *oidc.Provider // nil when there is none
	pages    []string       // origins of the pages that a browser may be sent back to
}

// Bounds of the input from a browser.
const (
	maxReturn = 8 << 10 // bytes of the query with which the browser comes back
	maxPage   = 2 << 10
)

// getOpenID sends a browser to the provider. The cookie identifies the browser when it comes
// back. The cookie gives access to nothing, and is no session.
func (s *openIDLogins) getOpenID(a *answer, r *http.Request, _ httprouter.Params) error {
	a.setCache(cachePrivate)
	q, err := readQuery(r, "page")
	if err != nil {
		return err
	}
	page := q.Get("page")
	if q.Has("page") && !s.mayReturn(page) {
		return fault.New(fault.Invalid, "a browser is sent back to pages of the origins in api.cors_origins alone").WithCode("bad_query")
	}
	payer, err := s.admit(r)
	if err != nil {
		return err
	}
	location, browser, err := s.provider.BeginLogin(r.Context(), payer, page)
	if err != nil {
		return err
	}
	a.Header().Set("Set-Cookie", s.cookie(browser, 10*time.Minute).String())
	sendTo(a, location)
	return nil
}

// mayReturn reports whether a browser may be sent back to a page. The origin of the page must be
// allowed to use the API. The address of the page must have no fragment and no user information,
// and at most maxPage bytes.
func (s *openIDLogins) mayReturn(page string) bool {
	u, err := url.Parse(page)
	return err == nil && len(page) <= maxPage && u.User == nil && !strings.Contains(page, "#") && slices.Contains(s.pages, u.Scheme+"://"+u.Host)
}

// admit counts a step of a login as an attempt at a password. It returns the payer, which is the
// client whose budget the step is charged to.
func (s *openIDLogins) admit(r *http.Request) (payer string, err error) {
	if s.provider == nil {
		return "", fault.New(fault.NotFound, "this server has no OpenID provider").WithCode("no_provider")
	}
	payer = attempt{client: s.clientOf(r)}.payer()
	if ok, after := s.logins.clients.Allow(payer); !ok {
		s.logins.outcomes.WithLabelValues("limited").Inc()
		return "", errTooManyLogins.After(after)
	}
	return payer, nil
}

// getOpenIDCallback makes a session for a browser that comes back from the provider, if the
// account that signed in there was linked to an active user before.
func (s *openIDLogins) getOpenIDCallback(a *answer, r *http.Request, _ httprouter.Params) error {
	a.setCache(cachePrivate)
	if _, err := s.admit(r); err != nil {
		return err
	}
	if len(r.URL.RawQuery) > maxReturn {
		return fault.New(fault.Invalid, "the query is too long").WithCode("bad_query")
	}
	q := r.URL.Query() // providers add parameters of their own
	back := oidc.Return{State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Refusal: q.Get("error")}
	if c, err := r.Cookie(s.cookie("", 0).Name); err == nil {
		back.Browser = c.Value
	}
	a.Header().Set("Set-Cookie", s.cookie("", -1).String())
	who, page, err := s.provider.FinishLogin(r.Context(), back)
	if err != nil {
		s.count(err)
		return err
	}
	u, digest, found, err := s.store.Instance.Identities.Find(r.Context(), who.Issuer, who.Subject)
	if err == nil && !found {
		err = fault.New(fault.Unauthenticated, "the account that signed in there is linked to no user who may sign in here").WithCode("not_linked").
			WithHint("the operator links users: lightweb user link-oidc")
	}
	s.count(err)
	if err != nil {
		return err
	}
	s.logins.write(r.Context(), attempt{client: s.clientOf(r), user: u}, &instance.Password{}, nil)
	if page == "" {
		return s.sendSession(a, r, u, digest, instance.PasswordScopes(), http.StatusOK)
	}
	secret, err := s.sessions.begin(r.Context(), u, digest, instance.PasswordScopes())
	if err == nil {
		sendTo(a, page+"#session="+url.QueryEscape(secret))
	}
	return err
}

// count counts a login by its outcome.
func (s *openIDLogins) count(err error) {
	outcome := "right"
	switch {
	case fault.KindOf(err) == fault.Unauthenticated:
		outcome = "wrong"
	case err != nil:
		outcome = "failed"
	}
	s.logins.outcomes.WithLabelValues(outcome).Inc()
}

// cookie returns the cookie that identifies the browser during a login. Over https the cookie's
// name has a prefix that keeps other hosts from setting the cookie.
func (s *openIDLogins) cookie(value string, age time.Duration) *http.Cookie {
	c := &http.Cookie{Name: "lw_oidc", Value: value, Path: "/api/session/oidc", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(age.Seconds())}
	if strings.HasPrefix(s.local.Origin(), "https:") {
		c.Name, c.Path, c.Secure = "__Host-"+c.Name, "/", true
	}
	if age < 0 {
		c.MaxAge = -1
	}
	return c
}

// sendTo redirects a browser. The page at location does not learn the address from which the
// browser came.
func sendTo(a *answer, location string) {
	a.Header().Set("Location", location)
	a.Header().Set("Referrer-Policy", "no-referrer")
	a.WriteHeader(http.StatusSeeOther)
}
