package handler

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const question = "Question"

// maxOptions is the greatest number of options of a poll.
const maxOptions = 50

// checkOptions refuses a poll with too many options.
func checkOptions(o *vocab.Object) error {
	if o.Type != question {
		return nil
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		options, err := o.Doc.Refs(name)
		if err == nil && len(options) > maxOptions {
			err = fault.New(fault.Invalid, "a poll of more than 50 options is not taken")
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, "the options of the poll cannot be taken", err).At("/object/" + name)
		}
	}
	return nil
}

// poll is a stored Question with its counts of votes. Voters choose one of its options, or any
// number of them (ActivityStreams vocabulary, Question).
type poll struct {
	doc     vocab.Doc
	options []vocab.Doc
	once    bool // each voter may choose only one option
}

// pollOf returns the poll in an object. The poll's methods change the document of the object,
// so the caller must not share that document.
func pollOf(o *vocab.Object) poll {
	if many := o.Doc.Subs("anyOf"); len(many) > 0 {
		return poll{o.Doc, many, false}
	}
	return poll{o.Doc, o.Doc.Subs("oneOf"), true}
}

// findOption returns the index of the option with the given name, or -1 if there is none.
func (p poll) findOption(name string) int {
	return slices.IndexFunc(p.options, func(o vocab.Doc) bool { return o.Words("name") == name })
}

// isOpen reports whether votes still count.
func (p poll) isOpen(now time.Time) bool {
	at, isClosed := vocab.ClosingOf(p.doc)
	return !isClosed && (at.IsZero() || now.Before(at))
}

// addVotes adds n to the number of votes for an option.
func (p poll) addVotes(option int, n int64) {
	if option < len(p.options) {
		addTo(repliesOf(p.options[option]), "totalItems", n)
	}
}

// addVoters adds n to the number of voters.
func (p poll) addVoters(n int64) { addTo(p.doc, "votersCount", n) }

// repliesOf returns the collection of the votes for an option, and makes it if need be. Only its
// size is shown.
func repliesOf(option vocab.Doc) vocab.Doc {
	if option.Sub("replies") == nil {
		option["replies"] = vocab.Doc{"type": "Collection"}
	}
	return option.Sub("replies")
}

// addTo adds n to a count, which does not fall below zero.
func addTo(d vocab.Doc, name string, n int64) {
	before, _ := d.Count(name)
	d.SetCount(name, max(0, before+n))
}

// takeCounts copies the number of voters, and the votes for options with the same names, from
// another version of the poll. It also copies the end of the poll if that is earlier. It reports
// whether anything changed.
func (p poll) takeCounts(from poll) bool {
	news := takeCount(p.doc, from.doc, "votersCount")
	news = p.takeEnd(from) || news
	for _, o := range p.options {
		i := from.findOption(o.Words("name"))
		if i >= 0 && takeCount(repliesOf(o), from.options[i].Sub("replies"), "totalItems") {
			news = true
		}
	}
	return news
}

// takeEnd copies the members closed and endTime from another version of the poll, as far as the
// poll is closed earlier by them. A poll never opens again. It reports whether any of them changed.
func (p poll) takeEnd(from poll) (news bool) {
	for _, name := range []string{"endTime", "closed"} {
		at, before := from.doc.Time(name), p.doc.Time(name)
		if !at.IsZero() && (before.IsZero() || at.Before(before)) {
			p.doc[name], news = from.doc[name], true
		}
	}
	_, isClosed := vocab.ClosingOf(from.doc)
	if _, wasClosed := vocab.ClosingOf(p.doc); isClosed && !wasClosed && p.doc.Time("closed").IsZero() {
		p.doc["closed"], news = true, true
	}
	return news
}

func takeCount(d, from vocab.Doc, name string) bool {
	n, counts := from.Count(name)
	if before, counted := d.Count(name); !counts || counted && before == n {
		return false
	}
	d.SetCount(name, n)
	return true
}

// refreshPoll copies the counts of votes, and an earlier end, from fresh, the poll in an Update
// that does not give the time of a change. Such an Update changes nothing else.
func refreshPoll(ctx context.Context, tx *user.Tx, stored *user.Object, fresh *vocab.Object) error {
	o, err := stored.Parse()
	if err != nil || o.Type != question || !pollOf(o).takeCounts(pollOf(fresh)) {
		return ignoredUnless(err)
	}
	return tx.Objects.Recount(ctx, o.ID, o.Doc.JSON())
}

// Votes reports whether a post is a vote in a poll. Mastodon sends a vote as a Note with a name
// and no content.
func Votes(o *vocab.Object) bool {
	return o.Type == "Note" && o.InReplyTo != "" && o.Doc.Words("name") != "" && o.Doc.Words("content") == "" && o.Doc["attachment"] == nil
}

// receiveVote counts a vote in an open poll of the user's that the voter may see. The activity
// of the vote is removed, and no event tells who voted.
func receiveVote(ctx context.Context, tx *user.Tx, local *actor.Local, r *Received, v *vocab.Object) error {
	if !r.Mine(v.InReplyTo) {
		return ErrIgnored
	}
	o, err := findShown(ctx, tx, local.Addresses, r, v.InReplyTo)
	if err != nil || o == nil || o.Type != question || !o.AttributedTo.Same(r.Me) {
		return ignoredUnless(err)
	}
	p := pollOf(o)
	option := p.findOption(v.Doc.Words("name"))
	if option < 0 || !p.isOpen(r.Now) {
		return ErrIgnored
	}
	votes, voters, err := tx.Votes.Add(ctx, user.Vote{Question: o.ID, Actor: r.Actor.ID, Option: option}, p.once, r.Now)
	if err != nil || votes == 0 {
		return ignoredUnless(err)
	}
	p.addVotes(option, votes)
	p.addVoters(voters)
	if err := tx.Objects.Recount(ctx, o.ID, o.Doc.JSON()); err != nil {
		return err
	}
	return tx.Activities.Remove(ctx, r.own(r.Activity.ID))
}

// takeBackVotes removes the votes of an actor from all polls.
func takeBackVotes(ctx context.Context, tx *user.Tx, actor vocab.ID) error {
	votes, err := tx.Votes.Remove(ctx, actor)
	for len(votes) > 0 && err == nil {
		n := slices.IndexFunc(votes, func(v user.Vote) bool { return v.Question != votes[0].Question })
		if n < 0 {
			n = len(votes)
		}
		err = uncountVotes(ctx, tx, votes[:n])
		votes = votes[n:]
	}
	return err
}

// uncountVotes subtracts the votes of one actor, which are all in one Question, from the counts
// of that Question.
func uncountVotes(ctx context.Context, tx *user.Tx, votes []user.Vote) error {
	o, err := tx.Objects.FindLiving(ctx, votes[0].Question)
	if err != nil || o == nil {
		return err
	}
	p := pollOf(o)
	p.addVoters(-1)
	for _, v := range votes {
		p.addVotes(v.Option, -1)
	}
	return tx.Objects.Recount(ctx, votes[0].Question, o.Doc.JSON())
}
