// Package server speaks HTTP: the federation endpoints, the web pages, the client API, and the
// admin listener.
package server

import (
	"context"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/oidc"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/picture"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/search"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Inbox accepts activities from other servers.
type Inbox interface {
	Receive(ctx context.Context, r *http.Request, body []byte, user vocab.Username) error
	// ReceiveLarge is Receive for a body above BodyLimit. It calls read for the body once the
	// sender is known.
	ReceiveLarge(ctx context.Context, r *http.Request, user vocab.Username, read func(payer string) ([]byte, error)) error
	// Count counts a proven request of another server that does not go to an inbox. It counts in
	// the same way as a request to an inbox.
	Count(signer vocab.ID) error
	Admit(ctx context.Context, r *http.Request, body []byte) (*vocab.Actor, error)
}

// Outbox performs the actions of users' clients, and finds actors for them.
type Outbox interface {
	Dispatch(ctx context.Context, d outbox.Dispatch) (outbox.Result, error)
	AttemptQuotas(ctx context.Context, u vocab.Username, token uuid.UUID) ([]policy.Quota, error)
	FindActor(ctx context.Context, u vocab.Username, isAssistant bool, name string) (*vocab.Actor, error)
}

// Verifier finds out who signed a request.
type Verifier interface {
	Claims(r *http.Request, body []byte) ([]signature.Claim, error)
	Signer(ctx context.Context, claims []signature.Claim, want vocab.ID) (*vocab.Actor, error)
	// Introduce finds out who signed the headers of a request whose body is not read yet.
	Introduce(ctx context.Context, r *http.Request) (*vocab.Actor, error)
}

// Gate decides whether this server talks with a host (Check), and whether it accepts requests
// and posts of an actor (CheckActor). Its methods return nil if so, else the reason.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// Profiles has the profiles and settings of users.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// Deps are the parts that a server works with.
type Deps struct {
	Store    *db.Cluster
	Redis    *keyspace.Store // stores sessions
	Local    *actor.Local
	Verifier Verifier
	Gate     Gate
	Clients  *policy.Limiter // limits requests to inboxes, conversations and realtime, and claims of key packages, by client
	Lookups  *policy.Limiter // limits requests for actors, and for objects not held here, by user
	Inbox    Inbox
	Outbox   Outbox
	Feed     *feed.Reader
	Threads  *thread.Reader
	Search   *search.Searcher
	Sockets  *socket.Hub

	Conversations *conversation.Registry
	Members       *conversation.Members

	OpenID *oidc.Provider // the provider at which users may sign in; nil if there is none

	Profiles   Profiles
	Pictures   Pictures
	Log        *slog.Logger
	Metrics    *prometheus.Registry
	Now        func() time.Time
	Version    string                      // the version of this program
	Ready      func(context.Context) error // nil when requests can be served
	EventsWait func() bool                 // reports whether Redis does not answer, or refuses events

	BodyLimit      int64          // bytes of one activity from another server
	MLSBodyLimit   int64          // bytes of one activity with an MLS message from a known sender
	PageSize       int            // items in a page of a collection, and posts on a web page
	SecureMode     bool           // posts and relationships of users are shown only to senders who prove who they are
	CORSOrigins    []string       // origins of pages that may use the client API
	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For and X-Forwarded-Proto are believed
	Paused         bool           // inboxes, conversations and realtime refuse other servers
}

// Server answers requests. Public and Admin return its two handlers. The caller serves them on
// its own listeners.
type Server struct {
	Deps
	*clients
	metrics metrics
	lines   lines
	seed    maphash.Seed // the seed of the hashes in ETags
	answers *policy.Pool // limits the large answers that are being sent

	federation  *federation
	actors      *actors
	documents   *storedDocuments
	collections *collections
	discovery   *discovery
	api         *clientAPI
	openID      *openIDLogins
	pictures    *pictures
	messages    *conversations
	recovery    *recovery
	packages    *publicPackages
	peers       *conversationPeers
	realtime    *realtime
	pages       *pages
	events      *eventSockets
	webSockets  *webSockets
	operator    *operator
}

// New returns a server.
func New(d Deps) *Server {
	from := &clients{trusted: d.TrustedProxies, log: d.Log}
	a := &access{clients: from, store: d.Store, strangers: newStrangers(d.Store.Databases, d.Now), local: d.Local, verifier: d.Verifier, gate: d.Gate,
		now: d.Now, secureMode: d.SecureMode, sessions: sessions{d.Redis, d.Sockets}}
	owners := d.Store.As(pool.Owner)
	api := &clientAPI{a, owners, d.Profiles, d.Feed, d.Threads, d.Outbox, newBodies(policy.ActionBodies, maxAction), d.Lookups, d.Search, policy.Searches.Limiter(d.Now), newLogins(d), d.Version}
	events := &eventSockets{api, d.Sockets, commentTime}
	recent := newRecentPages(d.Now, d.Metrics)
	inboxes := &federation{access: a, inbox: d.Inbox, limiter: d.Clients, bodies: newBodies(policy.Bodies, max(d.BodyLimit, d.MLSBodyLimit)), bodyLimit: d.BodyLimit, mlsBodyLimit: d.MLSBodyLimit}
	messages := &conversations{api, d.Conversations, d.Members, newBodies(policy.ConversationBodies, maxConversation)}
	return &Server{Deps: d, clients: from, metrics: newMetrics(d.Metrics), lines: newLines(d.Now), seed: maphash.MakeSeed(), answers: policy.Answers.NewPool(),
		federation:  inboxes,
		actors:      &actors{a},
		documents:   &storedDocuments{a},
		collections: &collections{a, owners, d.Profiles, d.PageSize, recent},
		discovery:   &discovery{access: a, version: d.Version, home: homePage(d.Local.Host(), d.Local.HasPages())},
		api:         api,
		openID:      &openIDLogins{api, d.OpenID, d.CORSOrigins},
		pictures:    &pictures{api, d.Pictures, picture.NewMaker()},
		messages:    messages,
		recovery:    &recovery{messages, policy.RecoveryReports.Limiter(d.Now)},
		packages:    &publicPackages{inboxes, d.Conversations, policy.KeyPackageClaims.Limiter(d.Now), d.Paused},
		peers:       &conversationPeers{inboxes, messages, d.Paused},
		realtime:    &realtime{inboxes, d.Sockets, d.Paused},
		pages:       &pages{a, &actors{a}, &storedDocuments{a}, d.Profiles, d.Threads, d.PageSize, recent},
		events:      events,
		webSockets:  newWebSockets(events, d.CORSOrigins),
		operator:    &operator{d.Metrics, d.Ready, d.Paused, d.EventsWait},
	}
}

// Limits of a connection before a request is read, and of the time for one request.
const (
	headerTime  = 10 * time.Second
	requestTime = 30 * time.Second
	handleTime  = 25 * time.Second // less than requestTime, so that there is time to answer that the request took too long
	idleTime    = 2 * time.Minute
	maxHeader   = 32 << 10
	maxStreams  = 32 // requests at the same time over one connection of HTTP/2
)

// Harden limits how much of srv a client can use. It limits the time for headers, for a whole
// request and between two requests, the size of headers, and the requests at the same time over
// one connection. Unless the client is one of the proxies, it also limits the number of its
// connections. A connection without any request delays a Shutdown only for a limited time.
func Harden(srv *http.Server, proxies []netip.Prefix) { harden(srv, newConns(proxies)) }

func harden(srv *http.Server, c *conns) {
	srv.ReadHeaderTimeout = headerTime
	srv.ReadTimeout = requestTime
	srv.WriteTimeout = requestTime
	srv.IdleTimeout = idleTime
	srv.MaxHeaderBytes = maxHeader
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	srv.ConnState = c.followState
	srv.ConnContext = c.rememberConn
	srv.RegisterOnShutdown(func() { time.AfterFunc(newcomerTime, c.turnAway) })
}

// Public returns the handler for everybody: the federation endpoints, the web pages and the client
// API.
func (s *Server) Public() http.Handler {
	r := s.newRouter()
	for path, h := range s.getRoutes() {
		s.addRoute(r, http.MethodGet, path, h)
	}
	for path, h := range s.postRoutes() {
		s.addRoute(r, http.MethodPost, path, h)
	}
	for path, h := range s.putRoutes() {
		s.addRoute(r, http.MethodPut, path, h)
	}
	for path, h := range s.deleteRoutes() {
		s.addRoute(r, http.MethodDelete, path, h)
	}
	return s.observeRequests(s.allowOrigins(s.requireLegible(r)))
}

// postRoutes are the addresses that answer POST.
func (s *Server) postRoutes() map[string]handle {
	inbox := s.federation.postInbox
	if s.Paused {
		inbox = pausedInbox
	}
	return map[string]handle{
		"/inbox":             inbox,
		"/users/:user/inbox": inbox,
		"/api/activity":      s.api.wrapAPI(s.api.postActivity),
		"/api/session":       s.api.wrapAPI(s.api.postSession),
		"/api/me/password":   s.api.wrapAPI(s.api.postPassword),

		"/users/:user/keyPackages/claim":                 s.packages.postClaim,
		"/api/conversations":                             s.api.wrapAPI(s.messages.postConversation),
		"/api/conversations/:id/commits":                 s.api.wrapAPI(s.messages.ofUser(instance.ScopeWrite, s.messages.takeCommit(false))),
		"/api/conversations/:id/external-commit":         s.api.wrapAPI(s.messages.ofUser(instance.ScopeWrite, s.messages.takeCommit(true))),
		"/api/conversations/:id/messages":                s.api.wrapAPI(s.messages.ofUser(instance.ScopeWrite, s.messages.takeMessage)),
		"/api/conversations/:id/reset":                   s.api.wrapAPI(s.messages.ofUser(instance.ScopeWrite, s.messages.takeReset)),
		"/api/welcomes/:welcome/confirm":                 s.api.wrapAPI(s.messages.postConfirmation),
		"/api/keypackages":                               s.api.wrapAPI(s.messages.postKeyPackages),
		"/api/keypackages/claim":                         s.api.wrapAPI(s.messages.postClaimOf),
		"/users/:user/conversations/:id/commits":         s.peers.ofMember(s.messages.takeCommit(false)),
		"/users/:user/conversations/:id/external-commit": s.peers.ofMember(s.messages.takeCommit(true)),
		"/users/:user/conversations/:id/messages":        s.peers.ofMember(s.messages.takeMessage),
		"/users/:user/conversations/:id/reset":           s.peers.ofMember(s.messages.takeReset),
		"/api/mls/recovery-reports":                      s.api.wrapAPI(s.recovery.postReport),
		"/users/:user/realtime":                          s.realtime.postSignal,
	}
}

// putRoutes are the addresses that answer PUT.
func (s *Server) putRoutes() map[string]handle {
	return map[string]handle{
		"/api/me/icon":  s.api.wrapAPI(s.pictures.putPicture("icon", picture.IconSide)),
		"/api/me/image": s.api.wrapAPI(s.pictures.putPicture("image", picture.ImageSide)),

		"/api/conversations/:id/read": s.api.wrapAPI(s.messages.putRead),
	}
}

// deleteRoutes are the addresses that answer DELETE.
func (s *Server) deleteRoutes() map[string]handle {
	return map[string]handle{
		"/api/session":  s.api.wrapAPI(s.api.deleteSession),
		"/api/me/icon":  s.api.wrapAPI(s.pictures.deletePicture("icon")),
		"/api/me/image": s.api.wrapAPI(s.pictures.deletePicture("image")),

		"/api/keypackages/:package": s.api.wrapAPI(s.messages.deleteKeyPackage),
	}
}

// getRoutes are the addresses that answer GET.
func (s *Server) getRoutes() map[string]handle {
	return map[string]handle{
		"/":                                         s.discovery.getHome,
		"/.well-known/webfinger":                    s.discovery.getWebFinger,
		"/.well-known/host-meta":                    s.discovery.getHostMeta,
		"/.well-known/host-meta.json":               s.discovery.getHostMeta,
		"/.well-known/nodeinfo":                     s.discovery.getNodeInfoLinks,
		"/nodeinfo/2.1":                             s.discovery.getNodeInfo,
		"/nodeinfo/2.0":                             s.discovery.getOldNodeInfo,
		"/robots.txt":                               s.discovery.getRobots,
		"/favicon.svg":                              s.discovery.getFavicon,
		"/@:user":                                   s.pages.getProfile,
		"/@:user/:thing":                            s.pages.getPost,
		"/@:user/:thing/:tag":                       s.pages.getTag,
		"/api/session/oidc":                         s.api.wrapAPI(s.openID.getOpenID),
		"/api/session/oidc/callback":                s.api.wrapAPI(s.openID.getOpenIDCallback),
		"/actor":                                    s.actors.getInstanceActor,
		"/users/:user":                              s.actors.getActor,
		"/users/:user/inbox":                        s.collections.getInbox,
		"/users/:user/outbox":                       s.collections.getCollection(outboxCollection),
		"/users/:user/followers":                    s.collections.getCollection(followersCollection),
		"/users/:user/following":                    s.collections.getCollection(followingCollection),
		"/users/:user/featured":                     s.collections.getFeatured,
		"/users/:user/streams":                      s.collections.getStreamsOf,
		"/users/:user/streams/:stream":              s.collections.getStream,
		"/users/:user/followers_synchronization":    s.federation.getSynchronization,
		"/users/:user/activities/:thing":            s.documents.getActivity,
		"/users/:user/objects/:thing":               s.documents.getObject,
		"/users/:user/objects/:thing/replies":       s.collections.getRelated(repliesCollection),
		"/users/:user/objects/:thing/context":       s.collections.getRelated(threadCollection),
		"/users/:user/media/:name":                  s.pictures.getPicture,
		"/users/:user/messages":                     s.messages.getCollection,
		"/users/:user/keyPackages":                  s.packages.getCollection,
		"/users/:user/keyPackages/:package":         s.packages.getPackage,
		"/api/conversations":                        s.api.wrapAPI(s.messages.getConversations),
		"/api/conversations/:id":                    s.api.wrapAPI(s.messages.getConversation),
		"/api/conversations/:id/log":                s.api.wrapAPI(s.messages.ofUser(instance.ScopeRead, s.messages.showLogPage)),
		"/api/conversations/:id/group-info":         s.api.wrapAPI(s.messages.ofUser(instance.ScopeRead, s.messages.showGroupInfo)),
		"/api/mls/messages":                         s.api.wrapAPI(s.messages.getMessages),
		"/api/welcomes":                             s.api.wrapAPI(s.messages.getWelcomes),
		"/api/keypackages":                          s.api.wrapAPI(s.messages.getKeyPackages),
		"/api/keypackages/stats":                    s.api.wrapAPI(s.messages.getPackageStats),
		"/api/feed":                                 s.api.wrapAPI(s.api.getFeed),
		"/api/feed/:entry":                          s.api.wrapAPI(s.api.getFeedEntry),
		"/api/actions":                              s.api.wrapAPI(s.api.getActions),
		"/api/deliveries":                           s.api.wrapAPI(s.api.getDeliveries),
		"/api/deliveries/:job":                      s.api.wrapAPI(s.api.getDeliveryJob),
		"/api/me":                                   s.api.wrapAPI(s.api.getMe),
		"/api/actors":                               s.api.wrapAPI(s.api.getPerson),
		"/api/objects":                              s.api.wrapAPI(s.api.getObject),
		"/api/objects/thread":                       s.api.wrapAPI(s.api.getThread),
		"/api/relationships":                        s.api.wrapAPI(s.api.getRelationships),
		"/api/groups":                               s.api.wrapAPI(s.api.getGroups),
		"/api/search":                               s.api.wrapAPI(s.api.getSearch),
		"/api/audit":                                s.api.wrapAPI(s.api.getAudit),
		"/api/streams":                              s.api.wrapAPI(s.api.getStreams),
		"/api/events":                               s.api.wrapAPI(s.events.getEvents),
		socketPath:                                  s.api.wrapAPI(s.webSockets.getSocket),
		"/api/openapi.json":                         s.api.getOpenAPI,
		"/users/:user/conversations/:id":            s.peers.ofMember(s.messages.showState),
		"/users/:user/conversations/:id/log":        s.peers.ofMember(s.messages.showLogPage),
		"/users/:user/conversations/:id/group-info": s.peers.ofMember(s.messages.showGroupInfo),
	}
}

// Admin returns the handler for the operator. It serves profiles of this process if the parameter
// profiles is true. The handler must not be reachable from outside.
func (s *Server) Admin(profiles bool) http.Handler {
	r := s.newRouter()
	for path, h := range s.adminRoutes(profiles) {
		s.addRoute(r, http.MethodGet, path, h)
	}
	return s.observeRequests(s.guardHost(s.requireLegible(r)))
}

// adminRoutes are the addresses of Admin.
func (s *Server) adminRoutes(profiles bool) map[string]handle {
	all := map[string]handle{"/metrics": s.operator.getMetrics(), "/healthz": s.operator.getHealth, "/readyz": s.operator.getReady}
	if profiles {
		all["/debug/pprof/*profile"] = getProfile
	}
	return all
}

// newRouter returns a router that never redirects, because a peer's signature covers the path.
func (s *Server) newRouter() *httprouter.Router {
	r := httprouter.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.NotFound = http.HandlerFunc(s.answerNotFound)
	r.MethodNotAllowed = http.HandlerFunc(s.answerNotAllowed)
	r.PanicHandler = s.answerPanic
	return r
}

// handle answers a request, or returns the reason to refuse it.
type handle func(a *answer, r *http.Request, p httprouter.Params) error

// addRoute registers h. A handler of GET answers HEAD too (RFC 9110 §9.3.2).
func (s *Server) addRoute(r *httprouter.Router, method, path string, h handle) {
	run := func(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
		a := w.(*answer) // observeRequests made it
		a.route = path
		err := error(errNothing)
		if !strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") { // an encoded slash is data (RFC 3986 §2.2), and no id of this server has one
			err = h(a, r, p)
		}
		if err != nil {
			s.refuse(a, r, err)
		}
	}
	r.Handle(method, path, run)
	if method == http.MethodGet {
		r.Handle(http.MethodHead, path, run)
	}
}
