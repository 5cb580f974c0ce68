package inbox

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/mailbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	rivalTries  = 7           // the most times that a server is asked which of its actors owns an object
	keptAnswers = time.Minute // how long an answer is stored if all waiting users have taken it; the activity may still reach other users
	leftAnswers = time.Hour   // how long an answer is stored if a waiting user has not taken it
	askTime     = 30 * time.Second
)

// rivals asks servers which of two of their actors owns an object, when both use its id. The
// object of one of them is stored already. The activity of the other actor waits in the journal
// until the server has answered; after a restart, the next process finds it there and asks again.
// The question about an activity is asked once, not once for each user that the activity is for.
type rivals struct {
	Deps
	work    *intake.Background
	backoff mailbox.Backoff
	revisit func(u vocab.Username) // makes the intake read again the rows of the journal that wait for the user
	lose    func(x *applying)      // ignores an activity whose object belongs to another actor
	asked   *policy.Limiter
	open    *policy.Pool

	mu        sync.Mutex
	questions map[int64]*question // by the activity's row in the journal
}

// question is one activity about which a server is asked. All fields except the first three are
// guarded by the rivals' mu.
type question struct {
	object, author vocab.ID
	reader         *vocab.Username         // the recipient in whose name the object may be asked for; nil if in nobody's
	waiting        map[vocab.Username]bool // users who have not taken the answer yet
	answered       time.Time               // time of the answer; zero until it comes
	shown          *vocab.Object           // the object, if the server shows it as the author's; else nil
}

func newRivals(i *Inbox) *rivals {
	return &rivals{Deps: i.Deps, work: i.beside, backoff: mailbox.Backoff{Min: time.Second, Max: time.Minute},
		asked: policy.Rivals.Limiter(i.Now), open: policy.OpenRivals.NewPool(), questions: map[int64]*question{}}
}

// Ask starts asking the server of the activity's object, and reports whether u waits for the
// answer. If the sender or its domain has caused too many questions already, the activity is
// ignored.
func (r *rivals) Ask(u vocab.Username, seq int64, item intake.Item) bool {
	x := item.(*applying)
	waits := r.askServer(u, seq, x)
	if !waits {
		r.lose(x)
	}
	return waits
}

func (r *rivals) askServer(u vocab.Username, seq int64, x *applying) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.questions[seq]; q != nil {
		q.waiting[u] = true
		if !q.answered.IsZero() { // the answer came while u's database was applying the activity
			r.revisit(u)
		}
		return true
	}
	r.forgetAnswers()
	q := newQuestion(u, x)
	if ok, _ := r.asked.Allow(string(q.author)); !ok || !r.open.Take(q.payer(), 1) {
		return false
	}
	r.questions[seq] = q
	r.work.Go(func() { r.settleQuestion(q) })
	return true
}

// settleQuestion finds the answer to a question and stores it. A panic counts as the answer that
// the object's server does not show the object, so that no user waits for ever.
func (r *rivals) settleQuestion(q *question) {
	var shown *vocab.Object
	finished := true
	defer func() {
		if finished {
			r.answerQuestion(q, shown)
		}
	}()
	shown, finished = r.findObject(q)
}

// newQuestion returns the question whether the server of an activity's object shows the object as
// its author's. The question may be asked in the name of u, who received the activity from the
// author. But if a group announced the object with its author's proof, the question is asked in
// nobody's name, because the group must not make u's name known to the object's server.
func newQuestion(u vocab.Username, x *applying) *question {
	q := &question{object: x.Activity.Object.ID, author: x.Actor.ID, reader: &u, waiting: map[vocab.Username]bool{u: true}}
	if x.Proven {
		q.author, q.object = handler.Announced(x.Activity)
		q.reader = nil
	}
	return q
}

// forgetAnswers removes each answer that is older than leftAnswers, and each that is older than
// keptAnswers and for which no user waits. The caller holds mu.
func (r *rivals) forgetAnswers() {
	for seq, q := range r.questions {
		age := r.Now().Sub(q.answered)
		if !q.answered.IsZero() && (len(q.waiting) == 0 && age > keptAnswers || age > leftAnswers) {
			delete(r.questions, seq)
			r.open.Give(q.payer(), 1)
		}
	}
}

func (q *question) payer() string { return policy.RegistrableDomain(q.author.Host()) }

// findObject returns the object as its server shows it to the question's reader. It returns nil
// when the server does not show the object as q.author's, or cannot be reached in rivalTries
// tries. If the inbox closes before the result is known, the result "finished" is false. The
// question then stays open, and the activity waits in the journal for the next process.
func (r *rivals) findObject(q *question) (shown *vocab.Object, finished bool) {
	for try := range rivalTries {
		if try > 0 && !r.work.Pause(r.backoff.After(try-1)) {
			return nil, false
		}
		ctx, cancel := context.WithTimeout(policy.PaidByDomain(r.work.Context(), q.author.Host()), askTime)
		o, _, err := r.Actors.ObjectNow(ctx, q.object, q.reader)
		cancel()
		if err == nil && o.ID == q.object && o.OwnAuthors() && o.AttributedTo == q.author && conversation.CheckCiphertext(o.Doc) == nil {
			return o, true
		}
		if err != nil && r.work.Context().Err() != nil {
			return nil, false
		}
		if err == nil || unansweredFault(err, "its server does not answer") == nil {
			r.Log.Info("object is not the sender's", "object", q.object, "actor", q.author, "err", err)
			return nil, true
		}
	}
	return nil, true
}

// answerQuestion stores the answer, and lets the waiting users apply the activity.
func (r *rivals) answerQuestion(q *question, shown *vocab.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.answered, q.shown = r.Now(), shown
	for u := range q.waiting {
		r.revisit(u)
	}
}

// IsOpen reports whether u waits for an answer about an activity, and the answer has not come
// yet.
func (r *rivals) IsOpen(u vocab.Username, seq int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.questions[seq]
	return q != nil && q.waiting[u] && q.answered.IsZero()
}

// Open returns the rows about which users wait for an answer that has not come yet, with these
// users.
func (r *rivals) Open() map[int64][]vocab.Username {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := map[int64][]vocab.Username{}
	for seq, q := range r.questions {
		if q.answered.IsZero() {
			open[seq] = slices.Collect(maps.Keys(q.waiting))
		}
	}
	return open
}

// takeAnswer replaces the activity's object by the one that the server showed. It returns false
// if the server does not show the object as the actor's, so that the user ignores the activity. If
// there is no answer, it changes nothing and returns true.
func (r *rivals) takeAnswer(seq int64, x *applying) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.questions[seq]
	if q == nil || q.answered.IsZero() {
		return true
	}
	if q.shown == nil {
		return false
	}
	if !x.Proven {
		a := *x.Activity
		a.Object.Doc = nil // nobody reads the copy that the sender embedded; see handler.ObjectOf
		x.Activity = &a
	}
	x.fetched[q.object], x.Proven = q.shown, false
	return true
}

// Forget records that u has taken an answer.
func (r *rivals) Forget(u vocab.Username, seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.questions[seq]; q != nil {
		delete(q.waiting, u)
	}
}
