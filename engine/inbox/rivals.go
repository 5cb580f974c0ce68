package inbox

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	rivalTries  = 7           // until a server that cannot be asked has not said whose an object is
	keptAnswers = time.Minute // that everybody has taken who waited: the activity may be on its way to others
	leftAnswers = time.Hour   // that somebody has not
)

// rivals asks servers whose an object is whose id two of their actors use. What another actor has sent about it than who is
// here as its author waits in the journal until then: the next process finds it there, and asks anew. Each activity is asked
// about once, however many users it is for.
type rivals struct {
	inbox *Inbox
	asked *policy.Limiter
	open  *policy.Pool

	mu        sync.Mutex
	questions map[int64]*question // by the activity's row in the journal
}

// question is what is asked about one activity. Fields are guarded by the rivals' mu, but for the first two.
type question struct {
	object, author vocab.ID
	waiting        map[vocab.Username]bool // who has not taken the answer yet
	answered       time.Time               // zero until then
	shown          *vocab.Object           // what the server shows as that author's; nil: it does not
}

func newRivals(i *Inbox) *rivals {
	return &rivals{inbox: i, asked: policy.Rivals.Limiter(i.Now), open: policy.OpenRivals.NewPool(), questions: map[int64]*question{}}
}

// ask has the server of an activity's object asked, and tells whether u is to wait for what it says. The caller is one of
// the writers' goroutines.
func (r *rivals) ask(u vocab.Username, seq int64, x *applying) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.questions[seq]; q != nil {
		q.waiting[u] = true
		if !q.answered.IsZero() { // while u's database was applying the activity
			r.wake(u)
		}
		return true
	}
	r.forgetAnswers()
	q := &question{object: x.Activity.Object.ID, author: x.Actor.ID, waiting: map[vocab.Username]bool{u: true}}
	if ok, _ := r.asked.Allow(string(q.author)); !ok || !r.open.Take(q.payer(), 1) {
		return false
	}
	r.questions[seq] = q
	w := r.inbox.writers
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		r.answer(q, r.find(q, u))
	}()
	return true
}

// forgetAnswers forgets answers that nobody takes any more. The caller holds mu.
func (r *rivals) forgetAnswers() {
	for seq, q := range r.questions {
		age := r.inbox.Now().Sub(q.answered)
		if !q.answered.IsZero() && (len(q.waiting) == 0 && age > keptAnswers || age > leftAnswers) {
			delete(r.questions, seq)
			r.open.Give(q.payer(), 1)
		}
	}
}

func (q *question) payer() string { return policy.RegistrableDomain(q.author.Host()) }

// find returns the object as its server shows it to a user who was sent it, nil when it does not show it as that author's, or
// cannot be asked for long.
func (r *rivals) find(q *question, u vocab.Username) *vocab.Object {
	i := r.inbox
	for try := range rivalTries {
		if try > 0 && !i.writers.pause(i.writers.backoff.after(try-1)) {
			return nil
		}
		ctx, cancel := context.WithTimeout(policy.PaidByDomain(context.Background(), q.author.Host()), applyTime)
		o, _, err := i.Actors.ObjectNow(ctx, q.object, &u)
		cancel()
		if err == nil && o.ID == q.object && o.OwnAuthors() && o.AttributedTo == q.author && conversation.CheckCiphertext(o.Doc) == nil {
			return o
		}
		if err == nil || unanswered(err, "its server does not answer") == nil {
			i.Log.Info("object is not the sender's", "object", q.object, "actor", q.author, "err", err)
			return nil
		}
	}
	return nil
}

// answer lets those take up the activity who wait.
func (r *rivals) answer(q *question, shown *vocab.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.answered, q.shown = r.inbox.Now(), shown
	for u := range q.waiting {
		r.wake(u)
	}
}

// wake lets a drain of u's that is about to leave look into the journal again. The caller holds mu.
func (r *rivals) wake(u vocab.Username) {
	w := r.inbox.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.park(u, 0).arrivals++
}

// isOpen reports whether u waits for what is said about an activity.
func (r *rivals) isOpen(u vocab.Username, seq int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.questions[seq]
	return q != nil && q.waiting[u] && q.answered.IsZero()
}

// take gives an activity the object as its server shows it, and tells whether the user may apply it: not when the server
// does not show it as the actor's.
func (r *rivals) take(seq int64, x *applying) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.questions[seq]
	if q == nil || q.answered.IsZero() {
		return true
	}
	if q.shown != nil {
		x.fetched[q.object] = q.shown
	}
	return q.shown != nil
}

// forget says that u has taken an answer.
func (r *rivals) forget(u vocab.Username, seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.questions[seq]; q != nil {
		delete(q.waiting, u)
	}
}

// lose ends an activity whose object stays somebody else's.
func (r *rivals) lose(x *applying) {
	x.outcome, x.reason = outcomeIgnored, IgnoredContested
	r.inbox.applied(x)
	r.inbox.ignored.noted(x)
}
