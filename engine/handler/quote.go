package handler

import (
	"context"
	"maps"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/vocab"
)

// JSON members of a post of the user that quotes another post.
const (
	authorization = "quoteAuthorization" // the stamp of the quoted post's author
	refused       = "lwQuoteRefused"     // true: that author has refused the quote or revoked it
)

// sendQuoteRequest asks the author of a quoted post to approve the quote in a new post of the user
// (FEP-044f), if there is an author to ask. The request contains only the id of the new post, so
// that no further copy of the post's text has to be found when the post is deleted.
func sendQuoteRequest(ctx context.Context, tx *user.Tx, local *actor.Local, s *Sent, o *vocab.Object) error {
	if s.Quoted == nil {
		return nil
	}
	id, quoted := local.NewActivityID(s.User), vocab.QuoteOf(o.Doc)
	out := sender{tx: tx, local: local, user: s.User, now: s.Now, spelling: s.Spelling}
	return out.storeActivity(ctx, quoteRequestDoc(id, s.Actor.ID, quoted, o.ID), o.ID, o.ID, s.Quoted)
}

// needsStamp names the stamp in an answer to a QuoteRequest. The stamp must be on the server of
// the actor that answers.
func needsStamp(a *vocab.Activity) []vocab.ID {
	stamp, err := a.Doc.Ref("result")
	if err != nil || stamp.ID == "" || !stamp.ID.SameOrigin(a.Actor) {
		return nil
	}
	return []vocab.ID{stamp.ID}
}

// receiveQuoteAnswer handles the answer to a QuoteRequest of the user. Only the answer of the
// actor that was asked counts. An Accept needs a stamp of that actor for this very quote. Only the
// first stamp counts, because each stamp costs an Update to all who have the post. A Reject is
// final.
func receiveQuoteAnswer(ctx context.Context, tx *user.Tx, local *actor.Local, r *Received, status string) (Effects, error) {
	request, note, err := findAsked(ctx, tx, r)
	if err == nil && request == nil {
		return receiveReplyAnswer(ctx, tx, r)
	}
	if err != nil || note == nil || note.Doc.Flag(refused) {
		return Effects{}, ignoredUnless(err)
	}
	if status == user.Rejected {
		return Effects{}, refuseQuote(ctx, r.newSender(tx, local), note)
	}
	if note.Doc.Text(authorization) != "" {
		return Effects{}, ErrIgnored
	}
	// The request was sent to the author of the quoted post, so the sender is that author.
	want := vocab.Stamp{Author: r.Actor.ID, Quoting: note.ID, Quoted: request.Object.ID}
	stamp, err := keepStamp(ctx, tx, r, answeredStamp(r), want)
	if err != nil || stamp == "" {
		return Effects{}, ignoredUnless(err)
	}
	return Effects{}, r.newSender(tx, local).changeQuote(ctx, note, func(d vocab.Doc) { d[authorization] = string(stamp) })
}

// findAsked returns the user's QuoteRequest that the sender answers, and the post for which it was
// sent. Both results are nil if there is no such request to the sender. The result "note" is also
// nil if the post was deleted.
func findAsked(ctx context.Context, tx *user.Tx, r *Received) (request *vocab.Activity, note *vocab.Object, err error) {
	asked, err := tx.Activities.FindBy(ctx, user.Owned{ID: r.Activity.Object.ID, Actor: r.Me})
	if err != nil || asked == nil || asked.Type != vocab.QuoteRequest {
		return nil, nil, err
	}
	if request, err = asked.Parse(); err != nil || !audience.Names(request.Addressing, r.Actor.ID) {
		return nil, nil, err
	}
	note, err = findToChange(ctx, tx, asked.Object)
	return request, note, err
}

// findToChange is FindLiving for an object of the user that will be changed. It takes the lock
// of the object, so that it waits for an edit that is just being stored.
func findToChange(ctx context.Context, tx *user.Tx, id vocab.ID) (*vocab.Object, error) {
	if err := tx.Lock(ctx, LockName(id)); err != nil {
		return nil, err
	}
	return tx.Objects.FindLiving(ctx, id)
}

func answeredStamp(r *Received) *vocab.Object {
	for _, id := range needsStamp(r.Activity) {
		return r.Fetched[id]
	}
	return nil
}

// keepStamp stores the stamp o, in the form that its server shows, and returns the id of o. If o
// is not by want.Author, or does not approve the quote of want.Quoted in want.Quoting, keepStamp
// stores nothing and returns "". It also returns "" if the author has deleted the stamp.
func keepStamp(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object, want vocab.Stamp) (vocab.ID, error) {
	s := vocab.StampOf(o)
	if !s.Approves(want.Quoting, want.Quoted) || !s.Author.Same(want.Author) {
		return "", nil
	}
	kept, err := keepObject(ctx, tx, o, true, r.Now)
	if err != nil || !kept {
		return "", err
	}
	return o.ID, nil
}

// hasStampOf reports whether a post claims the stamp of its stored version for the same quote.
// Stored versions only have stamps that were verified.
func hasStampOf(o, stored *vocab.Object) bool {
	claimed := vocab.ClaimedStamp(o.Doc)
	return claimed != "" && claimed.Same(vocab.ClaimedStamp(stored.Doc)) && vocab.QuoteOf(o.Doc).Same(vocab.QuoteOf(stored.Doc))
}

// approve checks the stamp that a received post claims for its quote. If the author of the
// quoted post has issued the stamp for this quote, approve returns the post as approved.
// Otherwise it returns the post unchanged.
func approve(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object) (*vocab.Object, error) {
	claimed := vocab.ClaimedStamp(o.Doc)
	if claimed == "" {
		return o, nil
	}
	quoted := vocab.QuoteOf(o.Doc)
	author, err := quotedAuthor(ctx, tx, r, quoted)
	if err != nil || author == "" {
		return o, err
	}
	stamp, err := keepStamp(ctx, tx, r, r.Fetched[claimed], vocab.Stamp{Author: author, Quoting: o.ID, Quoted: quoted})
	if err != nil || stamp == "" {
		return o, err
	}
	return o.WithStamp(), nil
}

// approveEdit is approve for a new version of a stored post. If the new version claims the same
// stamp for the same quote as the stored one, the stamp needs no second proof.
func approveEdit(ctx context.Context, tx *user.Tx, r *Received, o, stored *vocab.Object) (*vocab.Object, error) {
	if hasStampOf(o, stored) {
		return o.WithStamp(), nil
	}
	return approve(ctx, tx, r, o)
}

// addStamp adds the stamp of an approved post to the stored version of the post, if that version
// has the same quote without a stamp. The stamp may be newer than the stored version, or its server
// did not answer when that version came.
func addStamp(ctx context.Context, tx *user.Tx, o *vocab.Object) error {
	if !o.HasStamp() {
		return nil
	}
	stored, err := tx.Objects.FindLiving(ctx, o.ID)
	if err != nil || stored == nil || vocab.ClaimedStamp(stored.Doc) != "" || !vocab.QuoteOf(stored.Doc).Same(vocab.QuoteOf(o.Doc)) {
		return err
	}
	d := maps.Clone(stored.Doc)
	d[authorization] = string(vocab.ClaimedStamp(o.Doc))
	return tx.Objects.Recount(ctx, stored.ID, d.JSON())
}

// quotedAuthor returns the author of a quoted post, as the post's server has shown it or else as
// the user's database holds it. It returns "" if neither has the post.
func quotedAuthor(ctx context.Context, tx *user.Tx, r *Received, quoted vocab.ID) (vocab.ID, error) {
	if o := r.Fetched[quoted]; o != nil && o.ID.Same(quoted) {
		return o.AttributedTo, nil
	}
	held, err := tx.Objects.FindLiving(ctx, quoted)
	if err != nil || held == nil {
		return "", err
	}
	return held.AttributedTo, nil
}

// withdrawApproval is called when an author deletes the object in the parameter stamp. If that
// object is a stamp, withdrawApproval removes the approval of the stored post that claims the
// stamp.
func withdrawApproval(ctx context.Context, tx *user.Tx, local *actor.Local, r *Received, stamp *vocab.Object) error {
	if stamp.Type != vocab.QuoteAuthorization {
		return nil
	}
	quoting := vocab.StampOf(stamp).Quoting
	find := tx.Objects.FindLiving
	if r.Mine(quoting) {
		find = func(ctx context.Context, id vocab.ID) (*vocab.Object, error) { return findToChange(ctx, tx, id) }
	}
	post, err := find(ctx, quoting)
	if err != nil || post == nil || !vocab.ClaimedStamp(post.Doc).Same(stamp.ID) {
		return err
	}
	if r.Mine(post.ID) {
		return refuseQuote(ctx, r.newSender(tx, local), post)
	}
	d := maps.Clone(post.Doc)
	delete(d, authorization)
	return tx.Objects.Recount(ctx, post.ID, d.JSON())
}

// refuseQuote marks a post of the user's own as one whose quote is refused. If the post has
// been sent out as approved, an Update is sent.
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
	return out.tx.Objects.Recount(ctx, note.ID, d.JSON())
}

// changeQuote changes the members of a post of the user that concern its quote. It sends an Update
// to everybody who has received the post, may still see it and is not blocked. This is not an edit
// of the text, so a post without the time of a change gets no such time. If the post has such a
// time, the time is renewed, because servers compare it to find the newer version. The Update
// itself has a time, so that it also counts where another actor passes it on.
func (s sender) changeQuote(ctx context.Context, note *vocab.Object, change func(vocab.Doc)) error {
	d := maps.Clone(note.Doc)
	change(d)
	now := s.now.UTC().Format(time.RFC3339Nano)
	if _, edited := d["updated"]; edited {
		d["updated"] = now
	}
	o, err := vocab.ObjectOf(d)
	if err != nil {
		return err
	}
	doc, readable := o.WithStamp().WrittenHere().Stored()
	if changed, err := s.tx.Objects.Replace(ctx, o.ID, doc, readable, s.now); err != nil || !changed {
		return err
	}
	inboxes, err := s.formerInboxes(ctx, o)
	if err != nil {
		return err
	}
	update := vocab.Doc{"id": string(s.local.NewActivityID(s.user)), "type": vocab.Update, "published": now, "object": d}
	audience.CopyOpen(update, d) // a community passes on only what names it in audience
	return s.storeFor(ctx, update, o.ID, o.ID, inboxes)
}

// formerInboxes returns the inboxes to which an object of the user was delivered, each once. It
// leaves out actors that the user blocks or that may not see the object any more.
func (s sender) formerInboxes(ctx context.Context, o *vocab.Object) ([]user.Inbox, error) {
	all, err := s.tx.Deliveries.ListSentTo(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	var had []vocab.ID
	for _, i := range all {
		had = append(had, i.Targets...)
	}
	blocked, err := s.tx.Blocks.FindAmong(ctx, had)
	if err != nil {
		return nil, err
	}
	out, err := s.outsiders(ctx, o, had)
	return delivery.MergeInboxes(WithoutActors(WithoutActors(all, blocked), out), nil), err
}

// outsiders returns a map that has true for each of the actors that may not see an object of
// the user any more.
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

// viewersOf returns the followers of the user, and the members of groups to which an object was
// addressed, as viewers of it.
func (s sender) viewersOf(ctx context.Context, o *vocab.Object) (map[vocab.ID]audience.Viewer, error) {
	viewers := map[vocab.ID]audience.Viewer{}
	followers, err := s.tx.Relationships.FollowerDestinations(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range followers {
		viewers[f.Actor] = audience.Viewer{Circles: []vocab.ID{s.local.Followers(s.user)}}
	}
	members, err := s.tx.Groups.ListUnnamed(ctx, o.ID)
	for _, m := range members {
		v := viewers[m.Actor]
		v.ByGroup = v.ByGroup || m.Still
		viewers[m.Actor] = v
	}
	return viewers, err
}

// WithoutActors removes actors from the targets of inboxes, and removes inboxes that have no
// targets left. The map "but" has true for each actor that is removed.
func WithoutActors(inboxes []user.Inbox, but map[vocab.ID]bool) (left []user.Inbox) {
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
