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

// TakeLarge takes all places for large activities. The result gives them back.
func (i *Inbox) TakeLarge() (free func()) {
	for range atOnce {
		i.intake.Large <- struct{}{}
	}
	return func() {
		for range atOnce {
			<-i.intake.Large
		}
	}
}

// Waiting returns how many activities are queued or being committed.
func (i *Inbox) Waiting() int { return int(i.intake.Places.Used()) }

// Held returns how many bytes of activities' bodies the writers hold.
func (i *Inbox) Held() int64 { return i.intake.Memory.Used() }

// Limit sets how many activities may wait, and how many bytes their bodies may have together.
func (i *Inbox) Limit(n int, bytes int64) {
	i.intake.Places, i.intake.Memory = policy.Queue.PoolOf(int64(n)), policy.QueueBytes.PoolOf(bytes)
}

// Backlog returns how many activities wait for u in the journal, and how many bytes they have. It
// returns the intake's own counts.
func (i *Inbox) Backlog(u vocab.Username) (activities, bytes int64) {
	b := i.intake.Backlogs.Of(u)
	return b.Activities.Used(), b.Bytes.Used()
}

// Backoff sets the first and the longest wait before the intake tries a stalled user's database
// again. Call it before anything is received.
func (i *Inbox) Backoff(least, most time.Duration) {
	i.intake.Backoff = mailbox.Backoff{Min: least, Max: most}
	i.applier.rivals.backoff = i.intake.Backoff
}

// Stalled reports whether u's database cannot be used now or u still catches up.
func (i *Inbox) Stalled(u vocab.Username) bool { return slices.Contains(i.intake.Stalled(), u) }

// Tend looks after the journal once. It takes up rows that the intake does not know at once,
// without waiting until they are old.
func (i *Inbox) Tend() error { return errors.Join(i.intake.TakeStrays(0), i.intake.Tend()) }

// Recount counts the activities that wait in the journal again.
func (i *Inbox) Recount() error { return i.intake.Recount(context.Background()) }

// Compared waits until no followers are being compared.
func (i *Inbox) Compared() { i.followers.running.Wait() }

// Offers returns how many senders wait until their followers are compared.
func (i *Inbox) Offers() int {
	i.followers.mu.Lock()
	defer i.followers.mu.Unlock()
	return len(i.followers.waiting)
}

// StoreDaily limits how many bytes of a domain are stored in a day for users who do not follow the
// sender.
func (i *Inbox) StoreDaily(n int) {
	i.bounds.storedOfDomain = policy.StrangersStorage.LimiterAt(policy.Daily(n), i.Now)
}

// TellDaily limits how many activities of strangers cause events for a user in a day.
func (i *Inbox) TellDaily(n int) {
	i.bounds.events = policy.StrangersEvents.SharedAt(policy.Daily(n), i.Now)
}

// StoreDailyForFollower limits how many bytes of a domain are stored in a day for a user who
// follows the sender.
func (i *Inbox) StoreDailyForFollower(n int) {
	i.bounds.storedForFollower = policy.FollowersStorage.LimiterAt(policy.Daily(n), i.Now)
}

// NewActorsDaily limits how many bytes of new actors are stored in a day for one domain.
func (i *Inbox) NewActorsDaily(n int) {
	i.bounds.newActors = policy.NewActors.LimiterAt(policy.Daily(n), i.Now)
}

// NewAcquaintancesDaily limits how many users a day get a new acquaintance of one domain. The
// limit does not count users who follow an actor of the domain.
func (i *Inbox) NewAcquaintancesDaily(n int) {
	i.bounds.newAcquaintances = policy.NewAcquaintances.LimiterAt(policy.Daily(n), i.Now)
}

// RejectDaily limits how many Rejects of Follows a domain causes in a day.
func RejectDaily(i *Inbox, n int) {
	i.bounds.rejected = policy.Rejections.LimiterAt(policy.Daily(n), i.Now)
}

// NewVotersDaily limits how many users get new acquaintances in a day through the votes that one
// group announces.
func (i *Inbox) NewVotersDaily(n int) {
	i.bounds.newVoters = policy.NewVoters.LimiterAt(policy.Daily(n), i.Now)
}

// FlushIgnored writes the records of activities that no user keeps.
func (i *Inbox) FlushIgnored(ctx context.Context) error { return i.ignored.flush(ctx) }

// Reserved returns how many bytes of memory are reserved for requests that are being read.
func (i *Inbox) Reserved() int64 { return i.memory.room.Used() }

// FillMemory lets another payer use all the memory for requests but the bytes left, until release()
// is called.
func (i *Inbox) FillMemory(left int64) (release func()) {
	n := policy.Memory.Pool - left
	i.memory.room.Spend("f.example", n)
	return func() { i.memory.room.Give("f.example", n) }
}

// Renew adds an actor to the queue of actors whose copies the next round renews.
func (i *Inbox) Renew(id vocab.ID) { i.renewer.add(id) }

// RenewAll runs one round of renewals.
func (i *Inbox) RenewAll() { i.renewer.renewAll() }

// Renewing returns how many actors wait to be renewed.
func (i *Inbox) Renewing() int64 { return i.renewer.room.Used() }

// RivalTime returns how long the engine tries to ask an unreachable server about the author of an
// object.
func (i *Inbox) RivalTime() (all time.Duration) {
	for try := 1; try < rivalTries; try++ {
		all += i.applier.rivals.backoff.After(try - 1)
	}
	return all
}

// AskAfterAnswer simulates a drain of u that asks another server about an activity. The server's
// answer came while u's database applied the activity. AskAfterAnswer reports whether the drain
// will read the journal again.
func (i *Inbox) AskAfterAnswer(u vocab.Username) (again bool) {
	r := i.applier.rivals
	r.revisit = func(vocab.Username) { again = true }
	r.questions[1] = &question{waiting: map[vocab.Username]bool{}, answered: i.Now()}
	return r.askServer(u, 1, nil) && again
}
