package delivery

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Dispatcher makes the attempts at all users' deliveries. The deliveries are stored in the users'
// databases; only those that this process has leased are in memory. The goroutine of Run makes all
// decisions (see loop). Turns (see schedule) and attempts run in goroutines of their own, and
// report their results to the goroutine of Run by messages (see mail).
type Dispatcher struct {
	Deps
	sender  *sender
	users   userStore
	metrics metrics
	mail    *mail
	loop    *loop // used only by the goroutine of Run
	poll    time.Duration
}

// New returns a dispatcher. It does nothing until Run is called.
func New(deps Deps) *Dispatcher {
	if deps.Concurrency == 0 {
		deps.Concurrency = 128
	}
	if deps.HostConcurrency == 0 {
		deps.HostConcurrency = 4
	}
	d := &Dispatcher{Deps: deps, users: postgres{deps.Store, deps.Users, deps.Owner, deps.Log}, mail: newMail(), poll: ledgerPoll}
	d.loop = newLoop(&d.Deps)
	d.metrics = newMetrics(deps.Metrics, d)
	d.sender = newSender(&d.Deps, d.metrics)
	return d
}

func (d *Dispatcher) requestTurn(u vocab.Username, at time.Time) {
	d.mail.post(func() { d.loop.requestTurn(u, at) })
}

// Leases returns the leases that a transaction which stores a job may take in the dispatcher's
// name. After the commit, Committed gives the leased deliveries to the dispatcher.
func (d *Dispatcher) Leases() user.DeliveryLeases {
	leases, _ := ask(d.mail, func() user.DeliveryLeases { return d.loop.leaseInAdvance(d.Now()) })
	return leases
}

// Run delivers until ctx ends. Then it starts nothing new, and gives turns and attempts in
// progress the drain time to end. Finally it releases the leases of this process, so that the
// leased deliveries are due immediately. The release may take releaseTime more. Run takes over the
// leases of processes that have ended, so only one process may run a dispatcher at a time. The
// fault is Busy if attempts did not end in the drain time.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	d.mail.open()
	d.begin(func() { d.sweepUsers(ctx) })
	news := d.loop.ledger.news
	d.begin(func() { d.keepLedger(ctx, news) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(d.startDue(work))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.mail.arrived:
			d.mail.deliver()
		}
	}
	return d.drain(work, cancel)
}

// startDue begins every turn and attempt that may begin now. It returns the time until the next
// turn becomes due by itself.
func (d *Dispatcher) startDue(ctx context.Context) time.Duration {
	if !d.loop.hasRecalled {
		return time.Hour
	}
	now := d.Now()
	for u, t := d.loop.beginTurn(now); u != nil; u, t = d.loop.beginTurn(now) {
		d.begin(func() { d.runTurn(ctx, u.name, t) })
	}
	for r := d.loop.beginAttempt(now); r != nil; r = d.loop.beginAttempt(now) {
		d.metrics.inflight.Inc()
		d.begin(func() { d.runAttempt(ctx, r) })
	}
	return d.loop.schedule.untilNext(now)
}

// begin calls work in a goroutine of its own. Before Run returns, it waits until work has ended.
func (d *Dispatcher) begin(work func()) {
	d.loop.beside++
	go func() {
		defer d.mail.post(func() { d.loop.beside-- })
		work()
	}()
}

// runTurn runs a turn t of u and reports the result to the loop. After an error it checks whether
// u was removed, so that the loop does not try again for ever.
func (d *Dispatcher) runTurn(ctx context.Context, u vocab.Username, t turn) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	got, err := d.users.runTurn(ctx, u, t)
	if err != nil {
		if d.users.isRemoved(ctx, u) {
			d.mail.post(func() { d.loop.forgetUser(u) })
			return
		}
		d.Log.WarnContext(ctx, "deliveries could not be claimed", "user", u, "err", err)
	}
	for _, since := range got.waited {
		d.metrics.first.Observe(t.now.Sub(since).Seconds())
	}
	d.mail.post(func() { d.loop.endTurn(u, t, got, err, d.Now()) })
}

// runAttempt makes an attempt at r and reports the result to the loop.
func (d *Dispatcher) runAttempt(ctx context.Context, r *row) {
	res := d.sender.attempt(ctx, r)
	d.metrics.inflight.Dec()
	d.mail.post(func() { d.loop.endAttempt(r, res, d.Now()) })
}
