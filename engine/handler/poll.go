package handler

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const question = "Question"

// maxOptions bounds the options of a poll.
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

// poll is a stored Question in which votes are counted: voters choose one of its options, or any
// of them (ActivityStreams vocabulary, Question).
type poll struct {
	doc     vocab.Doc
	options []vocab.Doc
	once    bool // one option to a voter
}

// pollOf reads the poll out of a document that belongs to the caller.
func pollOf(o *vocab.Object) poll {
	if many := o.Doc.Subs("anyOf"); len(many) > 0 {
		return poll{o.Doc, many, false}
	}
	return poll{o.Doc, o.Doc.Subs("oneOf"), true}
}

// findOption returns the place of the option with that name, -1 when there is none.
func (p poll) findOption(name string) int {
	return slices.IndexFunc(p.options, func(o vocab.Doc) bool { return o.Words("name") == name })
}

// isOpen reports whether votes still count.
func (p poll) isOpen(now time.Time) bool {
	if end := p.doc.Time("endTime"); !end.IsZero() && !now.Before(end) {
		return false
	}
	closed := p.doc.Time("closed")
	return now.Before(closed) || p.doc["closed"] == nil || p.doc["closed"] == false
}

// addVotes changes the number of votes for an option.
func (p poll) addVotes(option int, n int64) {
	if option < len(p.options) {
		addTo(repliesOf(p.options[option]), "totalItems", n)
	}
}

// addVoters changes the number of voters.
func (p poll) addVoters(n int64) { addTo(p.doc, "votersCount", n) }

// repliesOf returns the collection of the voters for an option. Only its size is shown.
func repliesOf(option vocab.Doc) vocab.Doc {
	if option.Sub("replies") == nil {
		option["replies"] = vocab.Doc{"type": "Collection"}
	}
	return option.Sub("replies")
}

// addTo changes a count, which does not fall below nothing.
func addTo(d vocab.Doc, name string, n int64) {
	before, _ := d.Count(name)
	d.SetCount(name, max(0, before+n))
}

// takeCounts takes the votes for options with the same names, and the number of voters, from
// another version of the poll. It reports whether any of them changed.
func (p poll) takeCounts(from poll) bool {
	news := takeCount(p.doc, from.doc, "votersCount")
	for _, o := range p.options {
		i := from.findOption(o.Words("name"))
		if i >= 0 && takeCount(repliesOf(o), from.options[i].Sub("replies"), "totalItems") {
			news = true
		}
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

// refreshPoll takes the counts of an Update without a time of change: its author changed nothing.
func refreshPoll(ctx context.Context, tx Tx, stored *db.Object, fresh *vocab.Object) error {
	o, err := stored.Parse()
	if err != nil || o.Type != question || !pollOf(o).takeCounts(pollOf(fresh)) {
		return ignoredUnless(err)
	}
	return tx.RecountObject(ctx, o.ID, o.Doc.JSON())
}

// Votes reports whether a post is a vote in a poll. Mastodon sends a vote as a Note with a name
// and no content.
func Votes(o *vocab.Object) bool {
	return o.Type == "Note" && o.InReplyTo != "" && o.Doc.Words("name") != "" && o.Doc.Words("content") == "" && o.Doc["attachment"] == nil
}

// receiveVote counts a vote in an open poll of the user's that the voter may see. Nothing else is
// kept of the vote, and no event tells who voted.
func receiveVote(ctx context.Context, tx Tx, local *actor.Local, r *Received, v *vocab.Object) error {
	if !r.Mine(v.InReplyTo) {
		return ErrIgnored
	}
	o, err := findShown(ctx, tx, local, r, v.InReplyTo)
	if err != nil || o == nil || o.Type != question || !o.AttributedTo.Same(r.Me) {
		return ignoredUnless(err)
	}
	p := pollOf(o)
	option := p.findOption(v.Doc.Words("name"))
	if option < 0 || !p.isOpen(r.Now) {
		return ErrIgnored
	}
	votes, voters, err := tx.AddVote(ctx, db.Vote{Question: o.ID, Actor: r.Actor.ID, Option: option}, p.once, r.Now)
	if err != nil || votes == 0 {
		return ignoredUnless(err)
	}
	p.addVotes(option, votes)
	p.addVoters(voters)
	if err := tx.RecountObject(ctx, o.ID, o.Doc.JSON()); err != nil {
		return err
	}
	return tx.RemoveActivity(ctx, r.own(r.Activity.ID))
}

// takeBackVotes takes the votes of an actor out of all polls.
func takeBackVotes(ctx context.Context, tx Tx, actor vocab.ID) error {
	votes, err := tx.RemoveVotes(ctx, actor)
	for len(votes) > 0 && err == nil {
		n := slices.IndexFunc(votes, func(v db.Vote) bool { return v.Question != votes[0].Question })
		if n < 0 {
			n = len(votes)
		}
		err = uncountVotes(ctx, tx, votes[:n])
		votes = votes[n:]
	}
	return err
}

// uncountVotes takes the votes of one actor out of the counts of their Question.
func uncountVotes(ctx context.Context, tx Tx, votes []db.Vote) error {
	stored, err := tx.Object(ctx, votes[0].Question)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return err
	}
	o, err := stored.Parse()
	if err != nil {
		return err
	}
	p := pollOf(o)
	p.addVoters(-1)
	for _, v := range votes {
		p.addVotes(v.Option, -1)
	}
	return tx.RecountObject(ctx, stored.URI, o.Doc.JSON())
}
