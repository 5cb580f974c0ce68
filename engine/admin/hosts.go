package admin

import (
	"context"
	"fmt"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Hosts are the other servers that the instance delivers to.
type Hosts struct{ in *instance.Instance }

// Host is the state of another server. A nil time means that there is no such time now.
type Host struct {
	Host         string     `json:"host"`
	State        string     `json:"state"` // ok, failing, open, half_open, inactive or paused
	Software     string     `json:"software"`
	Dialect      string     `json:"dialect"` // signature dialect that the host is known to accept
	Failures     int        `json:"failures"`
	FailingSince *time.Time `json:"failing_since"`
	LastFailure  *time.Time `json:"last_failure_at"`
	LastError    string     `json:"last_error"`
	DeliveredAt  *time.Time `json:"delivered_at"` // last success, to the hour
	NextAttempt  *time.Time `json:"next_attempt_at"`
	InactiveAt   *time.Time `json:"inactive_at"`
	PausedAt     *time.Time `json:"paused_at"`
}

// describeHost returns the row in the form that commands show.
func describeHost(h dbinstance.Host, now time.Time) Host {
	r := Host{Host: h.Host, State: delivery.HostState(h, now), Software: h.Software, Dialect: h.Dialect, Failures: h.Failures,
		FailingSince: h.FailingSince, LastFailure: h.FailedAt, LastError: h.Failure, DeliveredAt: h.DeliveredAt,
		NextAttempt: h.ClosedUntil, InactiveAt: h.InactiveAt, PausedAt: h.PausedAt}
	if h.PausedAt != nil {
		r.NextAttempt = nil
	}
	return r
}

// List returns hosts, sorted by name. If all is false, it returns only the hosts with failures
// or a pause.
func (hs Hosts) List(ctx context.Context, all bool) ([]Host, error) {
	hosts, err := hs.in.DB.Instance.Hosts.List(ctx, !all)
	if err != nil {
		return nil, err
	}
	out := make([]Host, len(hosts))
	for i, h := range hosts {
		out[i] = describeHost(h, hs.in.Now())
	}
	return out, nil
}

// Find returns the state of a host. The fault is NotFound when no row of the host is stored, and
// Usage for a malformed name.
func (hs Hosts) Find(ctx context.Context, name string) (Host, error) {
	host, err := ParseHost(name)
	if err != nil {
		return Host{}, err
	}
	h, err := hs.in.DB.Instance.Hosts.Find(ctx, host)
	if err != nil {
		return Host{}, err
	}
	return describeHost(h, hs.in.Now()), nil
}

// Pause stops deliveries to a host until Resume. A serving engine applies the pause within
// seconds.
func (hs Hosts) Pause(ctx context.Context, name string) (Host, error) {
	return hs.changeHost(ctx, name, hs.in.DB.Instance.Hosts.Pause)
}

// Resume ends a pause and clears the failures of a host, so that deliveries continue
// immediately. The fault is NotFound when no row of the host is stored.
func (hs Hosts) Resume(ctx context.Context, name string) (Host, error) {
	return hs.changeHost(ctx, name, hs.in.DB.Instance.Hosts.Resume)
}

// Probe makes the serving process send one delivery now to a host whose breaker is open or that is
// inactive. The fault is NotFound when no row of the host is stored. It is Conflict when the host
// is in another state, for example paused.
func (hs Hosts) Probe(ctx context.Context, name string) (Host, error) {
	return hs.changeHost(ctx, name, func(ctx context.Context, host string) error {
		h, err := hs.Find(ctx, host)
		switch {
		case err != nil:
			return err
		case h.State == delivery.HostPaused:
			return fault.New(fault.Conflict, host+" is paused").WithHint("lightweb host resume " + host)
		case h.State != delivery.HostOpen && h.State != delivery.HostInactive:
			return fault.New(fault.Conflict, fmt.Sprintf("%s is not left alone: it is %s", host, h.State)).WithHint("lightweb deliver retry --all --host " + host)
		}
		return hs.in.DB.Instance.Hosts.Probe(ctx, []string{host})
	})
}

// changeHost calls the function do for a host other than this server, and returns the host's new
// state.
func (hs Hosts) changeHost(ctx context.Context, name string, do func(context.Context, string) error) (Host, error) {
	host, err := ParseHost(name)
	if err != nil {
		return Host{}, err
	}
	if host == vocab.ID(hs.in.Config.PublicURL).Host() {
		return Host{}, fault.New(fault.Invalid, host+" is this server")
	}
	if err := do(ctx, host); err != nil {
		return Host{}, err
	}
	return hs.Find(ctx, host)
}

// ParseHost returns a host in the form that deliveries store (vocab.ParseHost). The fault is Usage
// for a malformed name.
func ParseHost(written string) (string, error) {
	host, err := vocab.ParseHost(written)
	if err != nil {
		return "", fault.Wrap(fault.Usage, fault.Public(err), err).WithHint("lightweb host list --all")
	}
	return host, nil
}
