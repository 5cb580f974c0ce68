package instance

import (
	"context"
	"fmt"
	"net/url"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// KeepOrigin makes public_url the stored origin of the instance. If another origin is stored,
// KeepOrigin replaces it, but only if no user has made an activity yet, no relay is stored, and no
// process serves the instance. Otherwise the fault is Config, or Unavailable if some user's
// activities cannot be read. If no origin is stored but there are activities, an earlier version
// of lightweb made them. Then KeepOrigin stores the origin of their ids, and refuses any other
// public_url.
func (in *Instance) KeepOrigin(ctx context.Context) error {
	has, err := in.DB.Instance.Origin(ctx)
	if err != nil || has == in.Config.PublicURL {
		return err
	}
	sent, err := in.DB.FindSent(ctx)
	if has == "" {
		return in.storeOrigin(ctx, sent, err)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, fmt.Sprintf("public_url is %s, and this instance is %s: whether it has sent anything cannot be told now", in.Config.PublicURL, has), err).
			WithHint("set public_url to " + has + ", or mend what 'lightweb db status' shows")
	}
	if sent != "" {
		return refuseOrigin(in.Config.PublicURL, has)
	}
	return in.changeOrigin(ctx, has)
}

// storeOrigin stores the first origin of the instance. If the parameter sent is the id of an
// activity, it stores the origin of that id. If sent is empty, it stores public_url. The parameter
// unread is the error of the users' databases that could not be searched for an activity. If sent
// is empty and unread is not nil, storeOrigin stores nothing, and a later start stores the origin.
func (in *Instance) storeOrigin(ctx context.Context, sent vocab.ID, unread error) error {
	origin := in.Config.PublicURL
	if sent != "" {
		origin = sent.Origin()
	} else if unread != nil {
		in.Log.WarnContext(ctx, "origin not remembered yet", "public_url", origin, "err", unread, "hint", "lightweb db status")
		return nil
	}
	if _, err := in.DB.Instance.SetOrigin(ctx, "", origin); err != nil {
		return err
	}
	return in.CheckOrigin(ctx)
}

// changeOrigin replaces the origin with public_url. No process may serve at that time, because
// its next id would have the old origin.
func (in *Instance) changeOrigin(ctx context.Context, has string) error {
	release, _, err := in.DB.Instance.Locks.Serve(ctx, "a change of public_url")
	if fault.KindOf(err) == fault.Conflict {
		return fault.Wrap(fault.Config, fmt.Sprintf("public_url is %s, and the engine that serves is %s", in.Config.PublicURL, has), err).
			WithHint("set public_url to " + has + ", or stop the engine first")
	}
	if err != nil {
		return err
	}
	defer release()
	changed, err := in.DB.Instance.SetOrigin(ctx, has, in.Config.PublicURL)
	if err != nil || !changed {
		return err
	}
	in.Log.WarnContext(ctx, "public_url changed: nothing had been sent under the old one", "old", has, "new", in.Config.PublicURL)
	return nil
}

// CheckOrigin refuses a public_url that is not the origin of this instance.
func (in *Instance) CheckOrigin(ctx context.Context) error {
	has, err := in.DB.Instance.Origin(ctx)
	if err != nil || has == "" || has == in.Config.PublicURL {
		return err
	}
	return refuseOrigin(in.Config.PublicURL, has)
}

func refuseOrigin(set, has string) error {
	return fault.New(fault.Config, fmt.Sprintf("public_url is %s, and this instance is %s for good: other servers know its users by that", set, has)).
		WithCode("origin_changed").
		WithHint("set public_url to " + has + "; for " + set + " make another instance, with a data_dir or database.url of its own")
}

// IsLocalOnly reports whether no other machine can reach the instance under its public_url.
func (c Config) IsLocalOnly() bool {
	u, err := url.Parse(c.PublicURL)
	return err == nil && isLoopback(u.Hostname())
}
