package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lightweb/lightweb/docs/examples/client"
	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Demonstration holds the settings of Demo.
type Demonstration struct {
	Dir      string // the folder in which each engine gets a folder of its own
	Version  string
	Packages string // the folder whose node_modules has ts-mls, for encrypted conversations; or empty
	Once     bool   // end after the story
}

// Demo runs two engines that federate over loopback with signed requests. Their users, alice and
// bob, follow, post, like and answer. Demo writes this story to out, a line for each part. After
// the story it serves until ctx ends, unless d.Once is true. The error names the part of the
// story that failed.
func Demo(ctx context.Context, d Demonstration, out io.Writer, log *slog.Logger) error {
	page, err := d.openClient()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 2)
	var people [2]*person
	opened := make(chan error, 2)
	for i, name := range []string{"alice", "bob"} {
		go func() {
			var err error
			people[i], err = settlePerson(ctx, filepath.Join(d.Dir, name), name, d.Version, page, log)
			opened <- err
		}()
	}
	err = errors.Join(<-opened, <-opened)
	for _, p := range people {
		if p != nil {
			// The engines are closed here, because the caller deletes the folder afterwards.
			defer p.engine.Close(context.WithoutCancel(ctx))
		}
	}
	if err != nil {
		return err
	}
	for _, p := range people {
		go func() { served <- p.engine.serveOn(ctx, p.parts, p.public, p.admin, nil) }()
	}
	alice, bob := people[0], people[1]
	// story is the sequence of actions of alice and bob.
	story := &story{out: out, alice: alice, bob: bob}
	if err = story.tellStory(ctx); err == nil && !d.Once {
		story.printInvitation()
		select {
		case <-ctx.Done():
		case err = <-served:
			served <- nil
		}
	}
	stop()
	return errors.Join(err, <-served, <-served)
}

// person is a user and the engine that serves this user alone.
type person struct {
	engine        *Engine
	parts         *parts
	name          vocab.Username
	token         string
	public, admin net.Listener
}

// openClient returns the handler that serves the example client.
func (d Demonstration) openClient() (http.Handler, error) {
	if d.Packages == "" {
		return client.Handler(nil), nil
	}
	packages := os.DirFS(filepath.Join(d.Packages, "node_modules"))
	if !client.HasPackages(packages) {
		return nil, fault.New(fault.Usage, fmt.Sprintf("%s has no node_modules with ts-mls", d.Packages)).
			WithHint("install it with docs/examples/client/install, which prints the folder")
	}
	return client.Handler(packages), nil
}

// settlePerson opens an engine with the example client on free loopback ports, and creates its
// user.
func settlePerson(ctx context.Context, dir, name, version string, page http.Handler, log *slog.Logger) (*person, error) {
	p := &person{}
	var err error
	if p.public, err = listenOn(ctx, "listen", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if p.admin, err = listenOn(ctx, "admin_listen", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	c := instance.DefaultConfig(dir)
	c.Version, c.PublicURL = version, "http://"+p.public.Addr().String()
	c.Federation.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Federation.AllowHTTP = true
	if p.engine, err = Open(ctx, c, log.With("instance", name)); err != nil {
		return nil, err
	}
	if p.parts, err = p.engine.newParts(ctx); err != nil {
		return p, err
	}
	p.parts.public.Handler = withClient(p.parts.public.Handler, page)
	if p.name, err = vocab.ParseUsername(name); err != nil {
		return p, err
	}
	_, p.token, err = admin.New(p.engine.in).Users.Create(ctx, admin.NewUser{Name: p.name, Token: true})
	return p, err
}

// withClient serves the example client beside an engine, so that its page and the API have one
// origin. It passes every other request on unchanged, because the signature of a peer's request
// includes the path.
func withClient(engine, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, client.Path) {
			page.ServeHTTP(w, r)
			return
		}
		engine.ServeHTTP(w, r)
	})
}

// clientLink returns the address that opens the client with the person signed in. The token is in
// the fragment, which browsers do not send, so no log contains the token.
func (p *person) clientLink() string {
	return p.engine.in.Config.PublicURL + client.Path + "#token=" + p.token
}

func (p *person) handle() string { return p.engine.in.Local.Handle(p.name) }

// dispatchAction dispatches an action as the person, and returns the id of its activity.
func (p *person) dispatchAction(ctx context.Context, action string, params vocab.Doc) (vocab.ID, error) {
	r, err := p.parts.outbox.Dispatch(ctx, outbox.Dispatch{User: p.name, Action: pipeline.Action{Name: action, Params: params.JSON()}})
	return r.ActivityID, err
}

// patience is the longest time that awaitItem waits for one event of the story.
const patience = 20 * time.Second

// awaitItem waits until the feed with the given name has an item of the given type by the given
// actor. It returns that item.
func (p *person) awaitItem(ctx context.Context, name, kind string, by vocab.ID) (feed.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		page, err := p.parts.feed.Page(ctx, p.name, name, "", 0)
		if err != nil {
			return feed.Item{}, err
		}
		for _, item := range page.Items {
			if item.Type == kind && item.ActorURI == by {
				return item, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return feed.Item{}, fault.New(fault.Busy, fmt.Sprintf("%s did not see a %s by %s within %s", p.name, kind, by, patience))
		}
	}
}

// story is the sequence of actions that alice and bob take.
type story struct {
	out        io.Writer
	alice, bob *person
	note       vocab.ID // written by bob
	answer     vocab.ID // written by alice
}

func (s *story) tellStory(ctx context.Context) error {
	fmt.Fprintf(s.out, "two engines on loopback, each with a PostgreSQL of its own:\n  %s   %s\n\n", s.alice.handle(), s.bob.handle())
	for _, chapter := range []struct {
		says string
		tell func(context.Context) error
	}{
		{"alice follows bob, and bob's engine accepts", s.tellFollow},
		{"bob posts, and it is in alice's feed", s.tellPost},
		{"alice likes it, and bob is told", s.tellLike},
		{"alice answers, and bob is told", s.tellAnswer},
	} {
		start := time.Now()
		if err := chapter.tell(ctx); err != nil {
			fmt.Fprintf(s.out, "✗ %s\n", chapter.says)
			return fmt.Errorf("%s: %w", chapter.says, err)
		}
		fmt.Fprintf(s.out, "✓ %-46s %4d ms\n", chapter.says, time.Since(start).Milliseconds())
	}
	return nil
}

func (s *story) tellFollow(ctx context.Context) error {
	if _, err := s.alice.dispatchAction(ctx, "Follow", vocab.Doc{"actorUri": s.bob.handle()}); err != nil {
		return err
	}
	_, err := s.alice.awaitItem(ctx, "notifications", vocab.Accept, s.bob.engine.in.Local.ID(s.bob.name))
	return err
}

func (s *story) tellPost(ctx context.Context) error {
	if _, err := s.bob.dispatchAction(ctx, "CreateNote", vocab.Doc{"content": "Hello from the other side."}); err != nil {
		return err
	}
	item, err := s.alice.awaitItem(ctx, "main", vocab.Create, s.bob.engine.in.Local.ID(s.bob.name))
	if err != nil {
		return err
	}
	s.note, err = objectOf(item)
	return err
}

func objectOf(item feed.Item) (vocab.ID, error) {
	object, err := vocab.ParseDoc([]byte(item.Object))
	if err != nil {
		return "", err
	}
	return object.ID()
}

func (s *story) tellLike(ctx context.Context) error {
	if _, err := s.alice.dispatchAction(ctx, "Like", vocab.Doc{"objectId": string(s.note)}); err != nil {
		return err
	}
	_, err := s.bob.awaitItem(ctx, "notifications", vocab.Like, s.alice.engine.in.Local.ID(s.alice.name))
	return err
}

func (s *story) tellAnswer(ctx context.Context) error {
	if _, err := s.alice.dispatchAction(ctx, "Reply", vocab.Doc{"objectId": string(s.note), "content": "Hello back."}); err != nil {
		return err
	}
	item, err := s.bob.awaitItem(ctx, "notifications", vocab.Create, s.alice.engine.in.Local.ID(s.alice.name))
	if err == nil {
		s.answer, err = objectOf(item)
	}
	return err
}

// printInvitation prints the addresses of the client, and commands to try next.
func (s *story) printInvitation() {
	fmt.Fprintf(s.out, "\nin a browser, each signed in:\n\n  alice  %s\n  bob    %s\n", s.alice.clientLink(), s.bob.clientLink())
	fmt.Fprintf(s.out, `
both keep serving until Ctrl-C. try, in another shell:

  ALICE=%s BOB=%s
  curl -s -H "Authorization: Bearer $ALICE" '%[3]s/api/feed'
  curl -s -H "Authorization: Bearer $ALICE" -H 'Content-Type: application/json' \
    -d '{"action":"Reply","params":{"objectId":"%[5]s","content":"Nice to meet you."}}' '%[3]s/api/activity'
  curl -s -H 'Accept: application/activity+json' '%[6]s'

or watch what happens to alice, while bob likes her answer:

  curl -s -N -H "Authorization: Bearer $ALICE" '%[3]s/api/events' &
  curl -s -H "Authorization: Bearer $BOB" -H 'Content-Type: application/json' \
    -d '{"action":"Like","params":{"objectId":"%[7]s"}}' '%[4]s/api/activity'
`, s.alice.token, s.bob.token, s.alice.engine.in.Config.PublicURL, s.bob.engine.in.Config.PublicURL, s.note, s.bob.engine.in.Local.ID(s.bob.name), s.answer)
}
