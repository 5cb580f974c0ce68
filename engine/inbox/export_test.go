package inbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Waiting returns how many activities are queued or being committed.
func (i *Inbox) Waiting() int { return int(i.intake.Places.Used()) }

// Held returns how many bytes of bodies the writers hold.
func (i *Inbox) Held() int64 { return i.intake.Memory.Used() }

// Limit bounds how many activities may wait, and how many bytes their bodies may have.
func (i *Inbox) Limit(n int, bytes int64) {
	i.intake.Places, i.intake.Memory = policy.Queue.PoolOf(int64(n)), policy.QueueBytes.PoolOf(bytes)
}

// Backlog returns how many activities wait for u in the journal, and how many bytes, as the
// intake counts.
func (i *Inbox) Backlog(u vocab.Username) (activities, bytes int64) {
	b := i.intake.Backlogs.Of(u)
	return b.Activities.Used(), b.Bytes.Used()
}

// Backoff sets how long a stalled user is left alone at first, and at most. It must be called
// before anything is received.
func (i *Inbox) Backoff(least, most time.Duration) {
	i.intake.Backoff = mailbox.Backoff{Min: least, Max: most}
	i.applier.rivals.backoff = i.intake.Backoff
}

// Stalled reports whether u is.
func (i *Inbox) Stalled(u vocab.Username) bool { return slices.Contains(i.intake.Stalled(), u) }

// Tend looks after the journal once; rows that no entry stands for are taken up however young
// they are.
func (i *Inbox) Tend() error { return errors.Join(i.intake.TakeStrays(0), i.intake.Tend()) }

// Recount reads from the journal what waits.
func (i *Inbox) Recount() error { return i.intake.Recount(context.Background()) }

// Compared waits until nobody's followers are being compared.
func (i *Inbox) Compared() { i.followers.running.Wait() }

// Offers returns how many senders wait for their followers to be compared.
func (i *Inbox) Offers() int {
	i.followers.mu.Lock()
	defer i.followers.mu.Unlock()
	return len(i.followers.waiting)
}

// StoreDaily bounds how many bytes a domain may have stored a day for users who do not follow the
// sender.
func (i *Inbox) StoreDaily(n int) {
	i.bounds.storedOfDomain = policy.StrangersStorage.LimiterAt(policy.Daily(n), i.Now)
}

// TellDaily bounds how many activities of strangers a user is told of in a day.
func (i *Inbox) TellDaily(n int) {
	i.bounds.events = policy.StrangersEvents.SharedAt(policy.Daily(n), i.Now)
}

// StoreDailyForFollower bounds how many bytes a domain may have stored a day for one user who
// follows the sender.
func (i *Inbox) StoreDailyForFollower(n int) {
	i.bounds.storedForFollower = policy.FollowersStorage.LimiterAt(policy.Daily(n), i.Now)
}

// NewActorsDaily bounds how many bytes of actors that nobody here knew yet a domain may have
// stored a day.
func (i *Inbox) NewActorsDaily(n int) {
	i.bounds.newActors = policy.NewActors.LimiterAt(policy.Daily(n), i.Now)
}

// NewAcquaintancesDaily bounds how many users who do not follow its actors a domain may be new to
// in a day.
func (i *Inbox) NewAcquaintancesDaily(n int) {
	i.bounds.newAcquaintances = policy.NewAcquaintances.LimiterAt(policy.Daily(n), i.Now)
}

// NewVotersDaily bounds how many users voters may be new to in a day, by the votes that one group
// announces.
func (i *Inbox) NewVotersDaily(n int) {
	i.bounds.newVoters = policy.NewVoters.LimiterAt(policy.Daily(n), i.Now)
}

// FlushIgnored writes what was kept for nobody.
func (i *Inbox) FlushIgnored(ctx context.Context) error { return i.ignored.flush(ctx) }

// Reserved returns how many bytes of memory are held for requests that are being read.
func (i *Inbox) Reserved() int64 { return i.memory.room.Used() }

// FillMemory lets another party hold all the memory for requests, until the returned function is
// called.
func (i *Inbox) FillMemory() (release func()) {
	i.memory.room.Spend("f.example", policy.Memory.Pool)
	return func() { i.memory.room.Give("f.example", policy.Memory.Pool) }
}

// Renew lets an actor be asked again with the next round.
func (i *Inbox) Renew(id vocab.ID) { i.renewer.add(id) }

// RenewAll makes a round of what is to be asked again.
func (i *Inbox) RenewAll() { i.renewer.renewAll() }

// Renewing returns how many actors wait to be asked again.
func (i *Inbox) Renewing() int64 { return i.renewer.room.Used() }

// RivalTime returns for how long a server that cannot be asked whose an object is, is tried.
func (i *Inbox) RivalTime() (all time.Duration) {
	for try := 1; try < rivalTries; try++ {
		all += i.applier.rivals.backoff.After(try - 1)
	}
	return all
}

// AskAfterAnswer lets a drain of u's ask about an activity whose answer came while u's database
// was applying it, and reports whether the drain looks into the journal again before it leaves.
func (i *Inbox) AskAfterAnswer(u vocab.Username) (again bool) {
	r := i.applier.rivals
	r.revisit = func(vocab.Username) { again = true }
	r.questions[1] = &question{waiting: map[vocab.Username]bool{}, answered: i.Now()}
	return r.askServer(u, 1, nil) && again
}
