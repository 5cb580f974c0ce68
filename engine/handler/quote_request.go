package handler

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newQuoteRequest returns the handler of QuoteRequest: an actor asks whether a post of its own
// may quote one of the user's (FEP-044f). The request is answered immediately according to the
// user's setting: with an Accept and a stamp that this server shows, or with a Reject. If the
// user has revoked the approval of a quote, the same quote is not approved again.
func newQuoteRequest(local *actor.Local, profiles Profiles) Handler {
	q := quotes{local, profiles}
	return Handler{
		Concern:     audience.Concern{Owner: true},
		Notifies:    NoticeAlways,
		Final:       true,
		ShowsObject: true,
		Subject:     func(a *vocab.Activity) vocab.ID { return instrumentOf(a).ID },
		Check:       checkQuoteRequest,
		Needs: func(a *vocab.Activity) []vocab.ID {
			if i := instrumentOf(a); i.Doc == nil {
				return []vocab.ID{i.ID}
			}
			return nil
		},
		Received: q.receiveRequest,
	}
}

// quotes answers QuoteRequests for posts of users.
type quotes struct {
	local    *actor.Local
	profiles Profiles
}

// instrumentOf returns the post that would quote the user's post.
func instrumentOf(a *vocab.Activity) vocab.Ref {
	r, _ := a.Doc.Ref("instrument") // checkQuoteRequest has parsed it
	return r
}

// checkQuoteRequest refuses a request whose quoting post is not the actor's own, or does not quote
// the requested post.
func checkQuoteRequest(a *vocab.Activity) error {
	if err := checkObject(a); err != nil {
		return err
	}
	i, err := a.Doc.Ref("instrument")
	if err != nil {
		return err
	}
	if i.ID == "" || !i.ID.SameOrigin(a.Actor) {
		return fault.New(fault.Invalid, "the instrument must be a post on its actor's server").WithCode("foreign_object").At("/instrument")
	}
	if i.Doc == nil {
		return nil // the post is fetched from its origin, and checked then
	}
	if err := vocab.CheckBounds(i.Doc, "/instrument"); err != nil {
		return err
	}
	o, err := vocab.ObjectOf(i.Doc)
	if err != nil {
		return err
	}
	if !asksFor(a, o) {
		return fault.New(fault.Invalid, "the instrument must be a post of the actor's that quotes the object").WithCode("foreign_object").At("/instrument")
	}
	return nil
}

// asksFor reports whether o is a post of the request's actor that quotes the requested post.
func asksFor(a *vocab.Activity, o *vocab.Object) bool {
	return isReadable(o) && o.AttributedTo.Same(a.Actor) && o.OwnAuthors() && vocab.QuoteOf(o.Doc).Same(a.Object.ID)
}

// quotingPost returns the post for which a request was sent, or nil if it could not be fetched
// or does not fit the request.
func quotingPost(r *Received) *vocab.Object {
	i := instrumentOf(r.Activity)
	o := r.Fetched[i.ID]
	if i.Doc != nil {
		o, _ = vocab.ObjectOf(i.Doc) // checkQuoteRequest has parsed it
	}
	if o == nil || !asksFor(r.Activity, o) {
		return nil
	}
	return o
}

// receiveRequest answers a request. A request for a post that the actor cannot see is ignored, as
// if the post did not exist. receiveRequest stores the quoting post only if it is public. A
// quoting post that is not public is stored only if the actor sends it to the user.
func (q quotes) receiveRequest(ctx context.Context, tx *user.Tx, r *Received) (Effects, error) {
	quoting := quotingPost(r)
	quoted, err := findShown(ctx, tx, q.local.Addresses, r, r.Activity.Object.ID)
	if err != nil || quoting == nil || quoted == nil || !quoted.AttributedTo.Same(r.Me) {
		return Effects{}, ignoredUnless(err)
	}
	stamp, err := q.stamp(ctx, tx, r, vocab.Stamp{Author: r.Me, Quoting: quoting.ID, Quoted: quoted.ID}, quoted)
	if err != nil {
		return Effects{}, err
	}
	if stamp == "" {
		return Effects{Remembered: true}, q.sendReject(ctx, tx, r, quoting)
	}
	if audience.IsPublic(quoting.Addressing) {
		if quoting, err = approve(ctx, tx, r, quoting); err != nil {
			return Effects{}, err
		}
		if _, err := tx.Objects.Add(ctx, Stored(quoting, r.Now)); err != nil {
			return Effects{}, err
		}
	}
	known, err := tx.Activities.HasOther(ctx, vocab.Create, r.Activity.ID, r.Actor.ID, quoting.ID)
	if err != nil {
		return Effects{}, err
	}
	return Effects{Quotes: !known, Remembered: true}, q.sendAccept(ctx, tx, r, quoting, stamp)
}

// stamp returns the id of the stamp for a quote, and makes the stamp if it does not exist. It
// returns "" if the quote is refused or its approval was revoked.
func (q quotes) stamp(ctx context.Context, tx *user.Tx, r *Received, s vocab.Stamp, quoted *vocab.Object) (vocab.ID, error) {
	may, err := q.mayQuote(ctx, tx, r, quoted)
	if err != nil || !may {
		return "", err
	}
	id := r.Me + "/objects/" + vocab.ID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.Quoting.Canonical()+" "+s.Quoted.Canonical())).String())
	o, err := vocab.ObjectOf(s.Doc(id, r.Actor.ID))
	if err != nil {
		return "", err
	}
	kept, err := keepObject(ctx, tx, o, false, r.Now)
	if err != nil || !kept {
		return "", err
	}
	return id, nil
}

// mayQuote reports whether the sender may quote a post: it must be public, and the user's
// setting must permit it.
func (q quotes) mayQuote(ctx context.Context, tx *user.Tx, r *Received, quoted *vocab.Object) (bool, error) {
	if !audience.IsPublic(quoted.Addressing) {
		return false, nil
	}
	switch q.profiles.User(r.User).Quotes {
	case registry.AnyoneQuotes:
		return true, nil
	case registry.FollowersQuote:
		return tx.Relationships.IsAccepted(ctx, user.Follower, r.Actor.ID)
	}
	return false, nil
}

// sendAccept answers a request with the stamp.
func (q quotes) sendAccept(ctx context.Context, tx *user.Tx, r *Received, quoting *vocab.Object, stamp vocab.ID) error {
	id := q.local.NewActivityID(r.User)
	return q.sendAnswer(ctx, tx, r, quoting, vocab.Doc{"id": string(id), "type": vocab.Accept, "result": string(stamp)})
}

// sendReject sends a Reject of a request only once, even if the request arrives again. It finds
// the earlier Reject by its id, which is derived from the request, because the request itself
// is not stored.
func (q quotes) sendReject(ctx context.Context, tx *user.Tx, r *Received, quoting *vocab.Object) error {
	id := derivedID(r.Me, "reject", r.Activity.ID)
	sent, err := tx.Activities.Find(ctx, id)
	if err == nil && sent == nil {
		err = q.sendAnswer(ctx, tx, r, quoting, vocab.Doc{"id": string(id), "type": vocab.Reject})
	}
	return ignoredUnless(err)
}

func (q quotes) sendAnswer(ctx context.Context, tx *user.Tx, r *Received, quoting *vocab.Object, answer vocab.Doc) error {
	a := r.Activity
	answer["object"] = quoteRequestDoc(a.ID, a.Actor, a.Object.ID, quoting.ID)
	out := r.newSender(tx, q.local).withSpelling(a.ID, a.Written).withSpelling(quoting.ID, quoting.Written)
	return out.storeActivity(ctx, answer, a.ID, a.ID, r.Actor)
}

// quoteRequestDoc returns a QuoteRequest with the members that identify it.
func quoteRequestDoc(id, actor, quoted, quoting vocab.ID) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": vocab.QuoteRequest, "actor": string(actor), "object": string(quoted), "instrument": string(quoting)}
}

// Stands reports whether an object of the user may still be shown. A stamp may be shown as long
// as the quoted post exists and the user does not block the author of the quote.
func Stands(ctx context.Context, tx *user.Tx, o *vocab.Object) (bool, error) {
	if o.Type != vocab.QuoteAuthorization {
		return true, nil
	}
	quoted, err := tx.Objects.Find(ctx, vocab.StampOf(o).Quoted)
	if err != nil || quoted == nil || quoted.DeletedAt != nil {
		return false, err
	}
	for _, id := range audience.Open(o.Addressing) {
		if block, err := tx.Blocks.Find(ctx, user.Outbound, id); err != nil || block != nil {
			return false, err
		}
	}
	return true, nil
}

// isFirstToQuote reports whether a new post quotes an object of the user that the post's author
// may see, and no QuoteRequest for the post came before.
func isFirstToQuote(ctx context.Context, tx *user.Tx, local actor.Addresses, r *Received, o *vocab.Object) (bool, error) {
	id := vocab.QuoteOf(o.Doc)
	if !r.Mine(id) {
		return false, nil
	}
	quoted, err := findShown(ctx, tx, local, r, id)
	if err != nil || quoted == nil {
		return false, err
	}
	request, err := tx.Activities.Latest(ctx, vocab.QuoteRequest, r.Actor.ID, o.ID)
	return err == nil && request == nil, err
}
