package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// HostReport is what is known of another server. Times that are nil never were.
type HostReport struct {
	Host         string     `json:"host"`
	State        string     `json:"state"` // ok, failing, open, half_open, inactive or paused
	Software     string     `json:"software"`
	Dialect      string     `json:"dialect"` // of signatures, as last taken
	Failures     int        `json:"failures"`
	FailingSince *time.Time `json:"failing_since"`
	LastFailure  *time.Time `json:"last_failure_at"`
	LastError    string     `json:"last_error"`
	DeliveredAt  *time.Time `json:"delivered_at"` // when something last got through, to the hour
	NextAttempt  *time.Time `json:"next_attempt_at"`
	InactiveAt   *time.Time `json:"inactive_at"`
	PausedAt     *time.Time `json:"paused_at"`
}

func (e *Engine) hostReport(h db.Host) HostReport {
	r := HostReport{Host: h.Host, State: delivery.HostState(h, e.in.Now()), Software: h.Software, Dialect: h.Dialect, Failures: h.Failures,
		FailingSince: utc(h.FailingSince), LastFailure: utc(h.FailedAt), LastError: h.Failure, DeliveredAt: utc(h.DeliveredAt),
		NextAttempt: utc(h.ClosedUntil), InactiveAt: utc(h.InactiveAt), PausedAt: utc(h.PausedAt)}
	if h.PausedAt != nil {
		r.NextAttempt = nil
	}
	return r
}

// Hosts returns what is known of other servers, by name: those that something is the matter with, or all.
func (e *Engine) Hosts(ctx context.Context, all bool) ([]HostReport, error) {
	hosts, err := e.in.DB.Hosts(ctx, !all)
	if err != nil {
		return nil, err
	}
	out := make([]HostReport, len(hosts))
	for i, h := range hosts {
		out[i] = e.hostReport(h)
	}
	return out, nil
}

// Host returns what is known of another server. The fault is NotFound when nothing is, and Usage when that is no host.
func (e *Engine) Host(ctx context.Context, name string) (HostReport, error) {
	host, err := hostName(name)
	if err != nil {
		return HostReport{}, err
	}
	h, err := e.in.DB.Host(ctx, host)
	if err != nil {
		return HostReport{}, err
	}
	return e.hostReport(h), nil
}

// PauseHost holds back what is owed to a server until ResumeHost. A serving engine follows within seconds.
func (e *Engine) PauseHost(ctx context.Context, name string) (HostReport, error) {
	return e.changeHost(ctx, name, e.in.DB.PauseHost)
}

// ResumeHost lets deliveries to a server go on at once: it forgets a pause, and what failed. The fault is NotFound when
// nothing is known of it.
func (e *Engine) ResumeHost(ctx context.Context, name string) (HostReport, error) {
	return e.changeHost(ctx, name, e.in.DB.ResumeHost)
}

// ProbeHost lets one delivery find out at once how a server is that is left alone. The faults are NotFound when nothing is
// known of it, and Conflict when it is not left alone, or by the operator.
func (e *Engine) ProbeHost(ctx context.Context, name string) (HostReport, error) {
	return e.changeHost(ctx, name, func(ctx context.Context, host string) error {
		h, err := e.Host(ctx, host)
		switch {
		case err != nil:
			return err
		case h.State == delivery.HostPaused:
			return fault.New(fault.Conflict, host+" is paused").WithHint("lightweb host resume " + host)
		case h.State != delivery.HostOpen && h.State != delivery.HostInactive:
			return fault.New(fault.Conflict, fmt.Sprintf("%s is not left alone: it is %s", host, h.State)).WithHint("lightweb deliver retry --all --host " + host)
		}
		return e.in.DB.ProbeHosts(ctx, []string{host})
	})
}

func (e *Engine) changeHost(ctx context.Context, name string, change func(context.Context, string) error) (HostReport, error) {
	host, err := hostName(name)
	if err != nil {
		return HostReport{}, err
	}
	if host == vocab.ID(e.in.Config.PublicURL).Host() {
		return HostReport{}, fault.New(fault.Invalid, host+" is this server")
	}
	if err := change(ctx, host); err != nil {
		return HostReport{}, err
	}
	return e.Host(ctx, host)
}

// hostName returns a host as it stands in deliveries: in ASCII, with the port when that is not the usual one.
func hostName(written string) (string, error) {
	id, err := vocab.ParseID("https://" + written + "/")
	if err != nil || id.Host() == "" || strings.ContainsAny(written, "/?#@") {
		return "", fault.New(fault.Usage, fmt.Sprintf("%.100q is no host", written)).WithHint("lightweb host list --all")
	}
	return id.Canonical().Host(), nil
}
