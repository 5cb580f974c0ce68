package handler

import (
	"context"
	"maps"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Members of a quote of the user's.
const (
	authorization = "quoteAuthorization" // the stamp of who wrote what it quotes
	refused       = "lwQuoteRefused"     // true: who wrote that does not, or no longer, approve
)

// sendQuoteRequest asks the author of what a new post of the user's quotes to approve of that
// (FEP-044f), if there is somebody to ask. It is asked by the id of the post: the words stand in no
// further place that a deletion would have to reach.
func sendQuoteRequest(ctx context.Context, tx Tx, local *actor.Local, s *Sent, o *vocab.Object) error {
	if s.Quoted == nil {
		return nil
	}
	id, quoted := local.NewActivityID(s.User), vocab.QuoteOf(o.Doc)
	out := sender{tx: tx, local: local, user: s.User, now: s.Now, spelling: s.Spelling}
	return out.storeActivity(ctx, quoteRequestDoc(id, s.Actor.ID, quoted, o.ID), o.ID, o.ID, s.Quoted)
}

// needsStamp names the stamp that an answer to a QuoteRequest brings. Nobody issues one for others.
func needsStamp(a *vocab.Activity) []vocab.ID {
	stamp, err := a.Doc.Ref("result")
	if err != nil || stamp.ID == "" || !stamp.ID.SameOrigin(a.Actor) {
		return nil
	}
	return []vocab.ID{stamp.ID}
}

// receiveQuoteAnswer takes the answer to a QuoteRequest of the user's. It counts from the actor
// alone that was asked, and an Accept with a stamp of that actor's for this very quote. A Reject is
// final.
func receiveQuoteAnswer(ctx context.Context, tx Tx, local *actor.Local, r *Received, status string) (Effects, error) {
	request, note, err := findAsked(ctx, tx, r)
	if err != nil || note == nil || note.Doc.Flag(refused) {
		return Effects{}, ignoredUnless(err)
	}
	if status == db.Rejected {
		return Effects{}, refuseQuote(ctx, r.sender(tx, local), note)
	}
	stamp, err := keepStamp(ctx, tx, r, answeredStamp(r), note.ID, request.Object.ID)
	if err != nil || stamp == "" || note.Doc.Text(authorization) == string(stamp) {
		return Effects{}, ignoredUnless(err)
	}
	return Effects{}, r.sender(tx, local).changeQuote(ctx, note, func(d vocab.Doc) { d[authorization] = string(stamp) })
}

// findAsked returns the user's request that the sender was asked and answers, and the post that it
// was for; nil when there is none.
func findAsked(ctx context.Context, tx Tx, r *Received) (request *vocab.Activity, note *vocab.Object, err error) {
	asked, err := tx.ActivityBy(ctx, db.Owned{ID: r.Activity.Object.ID, Actor: r.Me})
	if err != nil || asked == nil || asked.Type != vocab.QuoteRequest {
		return nil, nil, err
	}
	if request, err = vocab.ParseActivity(asked.Raw); err != nil || !audience.Names(request.Addressing, r.Actor.ID) {
		return nil, nil, err
	}
	note, err = findToChange(ctx, tx, asked.Object)
	return request, note, err
}

// findToChange is findLiving for an object of the user's that is changed after it was read: an edit
// of the user's that is just being stored comes first.
func findToChange(ctx context.Context, tx Tx, id vocab.ID) (*vocab.Object, error) {
	if err := tx.Lock(ctx, LockName(id)); err != nil {
		return nil, err
	}
	return findLiving(ctx, tx, id)
}

// findLiving returns a stored object, nil when there is none or it was deleted.
func findLiving(ctx context.Context, tx Tx, id vocab.ID) (*vocab.Object, error) {
	stored, err := tx.Object(ctx, id)
	if err != nil || stored == nil || stored.DeletedAt != nil {
		return nil, err
	}
	return stored.Parse()
}

func answeredStamp(r *Received) *vocab.Object {
	for _, id := range needsStamp(r.Activity) {
		return r.Fetched[id]
	}
	return nil
}

// keepStamp keeps a stamp as its server shows it, and returns its id if it approves of a quote;
// empty when it does not, or its author took it back.
func keepStamp(ctx context.Context, tx Tx, r *Received, o *vocab.Object, quoting, quoted vocab.ID) (vocab.ID, error) {
	s := vocab.StampOf(o)
	if !s.Approves(quoting, quoted) {
		return "", nil
	}
	original, err := findLiving(ctx, tx, quoted)
	if err != nil || original != nil && !original.AttributedTo.Same(s.Author) {
		return "", err
	}
	kept, err := keepObject(ctx, tx, o, true, r.Now)
	if err != nil || !kept {
		return "", err
	}
	return o.ID, nil
}

// approve returns a post that the sender wrote as one whose quote is approved of, if the stamp that
// it claims says so. Nobody but the author of what it quotes approves.
func approve(ctx context.Context, tx Tx, r *Received, o *vocab.Object) (*vocab.Object, error) {
	claimed := vocab.ClaimedStamp(o.Doc)
	if claimed == "" {
		return o, nil
	}
	stamp, err := keepStamp(ctx, tx, r, r.Fetched[claimed], o.ID, vocab.QuoteOf(o.Doc))
	if err != nil || stamp == "" {
		return o, err
	}
	return o.Approved(), nil
}

// withdrawApproval makes a quote one that nobody approves of, when the author of what it quotes has
// deleted the stamp.
func withdrawApproval(ctx context.Context, tx Tx, local *actor.Local, r *Received, stamp *vocab.Object) error {
	if stamp.Type != vocab.QuoteAuthorization {
		return nil
	}
	find, quoting := findLiving, vocab.StampOf(stamp).Quoting
	if r.Mine(quoting) {
		find = findToChange
	}
	post, err := find(ctx, tx, quoting)
	if err != nil || post == nil || !vocab.ClaimedStamp(post.Doc).Same(stamp.ID) {
		return err
	}
	if r.Mine(post.ID) {
		return refuseQuote(ctx, r.sender(tx, local), post)
	}
	d := maps.Clone(post.Doc)
	delete(d, authorization)
	return tx.RecountObject(ctx, post.ID, d.JSON())
}

// refuseQuote marks a post of the user's as one whose quote is not approved of. Whoever was told
// otherwise is told.
func refuseQuote(ctx context.Context, out sender, note *vocab.Object) error {
	refuse := func(d vocab.Doc) {
		delete(d, authorization)
		d[refused] = true
	}
	if note.Doc.Text(authorization) != "" {
		return out.changeQuote(ctx, note, refuse)
	}
	d := maps.Clone(note.Doc)
	refuse(d)
	return out.tx.RecountObject(ctx, note.ID, d.JSON())
}

// sender returns who sends what follows from the received activity.
func (r *Received) sender(tx Tx, local *actor.Local) sender {
	return sender{tx: tx, local: local, user: r.User, now: r.Applied}
}

// changeQuote changes what a post of the user's says of its quote, and sends it to everybody who
// had the post and is not blocked since. It is no edit of the words: the post gets no time of a
// change, unless it has one already that says whether this version is the newer one.
func (s sender) changeQuote(ctx context.Context, note *vocab.Object, change func(vocab.Doc)) error {
	d := maps.Clone(note.Doc)
	change(d)
	if _, edited := d["updated"]; edited {
		d["updated"] = s.now.UTC().Format(time.RFC3339Nano)
	}
	o, err := vocab.ObjectOf(d)
	if err != nil {
		return err
	}
	doc, readable := o.Approved().Stored()
	if changed, err := s.tx.ReplaceObject(ctx, o.ID, doc, readable, s.now); err != nil || !changed {
		return err
	}
	inboxes, err := s.formerInboxes(ctx, o)
	if err != nil {
		return err
	}
	update := vocab.Doc{"id": string(s.local.NewActivityID(s.user)), "type": vocab.Update, "object": d}
	for _, field := range []string{"to", "cc"} {
		if v, there := d[field]; there {
			update[field] = v
		}
	}
	return s.storeFor(ctx, update, o.ID, o.ID, inboxes)
}

// formerInboxes returns where an object of the user's went, without actors that the user blocks and
// those who are not in its audience any more.
func (s sender) formerInboxes(ctx context.Context, o *vocab.Object) ([]db.Inbox, error) {
	all, err := s.tx.SentTo(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	var had []vocab.ID
	for _, i := range all {
		had = append(had, i.Targets...)
	}
	blocked, err := s.tx.Blocked(ctx, had)
	if err != nil {
		return nil, err
	}
	out, err := s.outsiders(ctx, o, had)
	return WithoutActors(WithoutActors(all, blocked), out), err
}

// outsiders tells of actors whether they may not see an object of the user's any more.
func (s sender) outsiders(ctx context.Context, o *vocab.Object, actors []vocab.ID) (map[vocab.ID]bool, error) {
	if audience.IsPublic(o.Addressing) {
		return nil, nil
	}
	viewers, err := s.viewersOf(ctx, o)
	if err != nil {
		return nil, err
	}
	post, out := audience.OfObject(o, s.local.Followers(s.user)), map[vocab.ID]bool{}
	for _, id := range actors {
		v := viewers[id]
		v.ID = id
		out[id] = !post.MaySee(v)
	}
	return out, nil
}

// viewersOf returns who may see an object of the user's as a follower, or a member of a group that
// it was for.
func (s sender) viewersOf(ctx context.Context, o *vocab.Object) (map[vocab.ID]audience.Viewer, error) {
	viewers := map[vocab.ID]audience.Viewer{}
	followers, err := s.tx.FollowerDestinations(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range followers {
		viewers[f.Actor] = audience.Viewer{Circles: []vocab.ID{s.local.Followers(s.user)}}
	}
	members, err := s.tx.Unnamed(ctx, o.ID)
	for _, m := range members {
		v := viewers[m.Actor]
		v.ByGroup = v.ByGroup || m.Still
		viewers[m.Actor] = v
	}
	return viewers, err
}

// WithoutActors leaves actors out of inboxes, and inboxes that are nobody else's.
func WithoutActors(inboxes []db.Inbox, but map[vocab.ID]bool) (left []db.Inbox) {
	for _, i := range inboxes {
		var actors []vocab.ID
		for _, t := range i.Targets {
			if !but[t] {
				actors = append(actors, t)
			}
		}
		if i.Targets = actors; len(actors) > 0 {
			left = append(left, i)
		}
	}
	return left
}
