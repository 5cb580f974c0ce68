package engine

import (
	"context"
	"fmt"
	"net/url"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keepOrigin holds public_url against the origin that this instance has, and remembers it. A new one is taken while no
// user has made an activity and nobody serves; after that the fault is Config. An instance of an earlier lightweb has the
// origin of the activities that it holds.
func (e *Engine) keepOrigin(ctx context.Context) error {
	has, err := e.db.Origin(ctx)
	if err != nil || has == e.cfg.PublicURL {
		return err
	}
	sent, err := e.db.FindSent(ctx)
	if has == "" {
		return e.rememberOrigin(ctx, sent, err)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, fmt.Sprintf("public_url is %s, and this instance is %s: whether it has sent anything cannot be told now", e.cfg.PublicURL, has), err).
			WithHint("set public_url to " + has + ", or mend what 'lightweb db status' shows")
	}
	if sent != "" {
		return refuseOrigin(e.cfg.PublicURL, has)
	}
	return e.changeOrigin(ctx, has)
}

// rememberOrigin remembers the first origin. While users' databases cannot be read, and unread says so, a later start does.
func (e *Engine) rememberOrigin(ctx context.Context, sent vocab.ID, unread error) error {
	origin := e.cfg.PublicURL
	if sent != "" {
		origin = sent.Origin()
	} else if unread != nil {
		e.log.WarnContext(ctx, "origin not remembered yet", "public_url", origin, "err", unread, "hint", "lightweb db status")
		return nil
	}
	if _, err := e.db.SetOrigin(ctx, "", origin); err != nil {
		return err
	}
	return e.checkOrigin(ctx)
}

// changeOrigin takes public_url in place of has. Nobody may serve meanwhile: the next id would be of the other origin.
func (e *Engine) changeOrigin(ctx context.Context, has string) error {
	release, _, err := e.db.LockServe(ctx, "a change of public_url")
	if fault.KindOf(err) == fault.Conflict {
		return fault.Wrap(fault.Config, fmt.Sprintf("public_url is %s, and the engine that serves is %s", e.cfg.PublicURL, has), err).
			WithHint("set public_url to " + has + ", or stop the engine first")
	}
	if err != nil {
		return err
	}
	defer release()
	changed, err := e.db.SetOrigin(ctx, has, e.cfg.PublicURL)
	if err != nil || !changed {
		return err
	}
	e.log.WarnContext(ctx, "public_url changed: nothing had been sent under the old one", "old", has, "new", e.cfg.PublicURL)
	return nil
}

// checkOrigin refuses a public_url that is not the origin of this instance.
func (e *Engine) checkOrigin(ctx context.Context) error {
	has, err := e.db.Origin(ctx)
	if err != nil || has == "" || has == e.cfg.PublicURL {
		return err
	}
	return refuseOrigin(e.cfg.PublicURL, has)
}

func refuseOrigin(set, has string) error {
	return fault.New(fault.Config, fmt.Sprintf("public_url is %s, and this instance is %s for good: other servers know its users by that", set, has)).
		WithCode("origin_changed").
		WithHint("set public_url to " + has + "; for " + set + " make another instance, with a data_dir or database.url of its own")
}

// isForTrying reports whether no other machine can reach this instance under its public_url.
func (c Config) isForTrying() bool {
	u, err := url.Parse(c.PublicURL)
	return err == nil && loopback(u.Hostname())
}
