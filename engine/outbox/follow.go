package outbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// follow asks to get an actor's posts (ActivityPub §6.5).
type follow struct {
	ActorURI string `json:"actorUri"`

	actor vocab.ID
}

func (p *follow) check() error { return present("actorUri", p.ActorURI) }

func (p *follow) resolve(ctx context.Context, o *Outbox, x *exchange) (err error) {
	if x.target, err = o.findActor(ctx, x, "actorUri", p.ActorURI); err != nil {
		return err
	}
	if x.target.ID.Same(x.actor.ID) {
		return bad("actorUri", "nobody follows themselves")
	}
	p.actor = x.target.ID
	x.to = []vocab.ID{p.actor}
	x.name(x.target)
	// Before the Follow leaves: what the actor posts next must find its way to the user.
	return o.Store.Acquaint(ctx, p.actor, []vocab.Username{x.User}, true)
}

func (p *follow) construct(*Outbox, *exchange) (string, any) { return vocab.Follow, string(p.actor) }

func (p *follow) subject() string { return followingOf(p.actor) }

func (p *follow) settled(ctx context.Context, tx *db.Tx, _ *exchange) (vocab.ID, error) {
	if err := apart(ctx, tx, p.actor); err != nil {
		return "", err
	}
	rel, err := tx.Relationship(ctx, db.Following, p.actor)
	if err != nil || rel == nil || rel.Status == db.Rejected {
		return "", err
	}
	return rel.Activity, nil
}

// unfollow takes a follow back.
type unfollow struct {
	ActorURI string `json:"actorUri"`

	actor  vocab.ID
	undone vocab.Doc
}

func (p *unfollow) check() error { return present("actorUri", p.ActorURI) }

func (p *unfollow) resolve(ctx context.Context, o *Outbox, x *exchange) (err error) {
	id, err := o.actorID(ctx, x, p.ActorURI)
	if err != nil {
		return err
	}
	err = o.Store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		rel, err := p.following(ctx, tx, id)
		if err != nil {
			return err
		}
		p.actor = rel.Actor
		p.undone, err = storedDoing(ctx, tx, vocab.Follow, rel.Activity, x.actor.ID, rel.Actor)
		return err
	})
	if err != nil {
		return err
	}
	if x.target, err = o.reach(ctx, x, p.actor); err != nil {
		return err
	}
	x.to = []vocab.ID{p.actor}
	x.name(x.target)
	return nil
}

func (p *unfollow) following(ctx context.Context, tx *db.Tx, actor vocab.ID) (*db.Relationship, error) {
	rel, err := tx.Relationship(ctx, db.Following, actor)
	if err != nil {
		return nil, err
	}
	if rel == nil {
		return nil, fault.New(fault.NotFound, "the actor is not followed").WithCode("not_following").At("/params/actorUri")
	}
	return rel, nil
}

func (p *unfollow) construct(*Outbox, *exchange) (string, any) { return vocab.Undo, p.undone }

func (p *unfollow) subject() string { return followingOf(p.actor) }

func (p *unfollow) settled(ctx context.Context, tx *db.Tx, _ *exchange) (vocab.ID, error) {
	_, err := p.following(ctx, tx, p.actor)
	return "", err
}

// answerFollow is what AcceptFollow and RejectFollow share: the Follow that is answered, by its id or by who sent it.
type answerFollow struct {
	ActivityID string `json:"activityId"`
	ActorURI   string `json:"actorUri"`

	rel      *db.Relationship
	answered vocab.Doc
}

// acceptFollow lets an actor have the user's posts, rejectFollow does not, or no longer (ActivityPub §7.5).
type (
	acceptFollow struct{ answerFollow }
	rejectFollow struct{ answerFollow }
)

func (p *answerFollow) check() error {
	if (p.ActivityID == "") == (p.ActorURI == "") {
		return bad("activityId", "give either activityId or actorUri")
	}
	return nil
}

func (p *answerFollow) resolve(ctx context.Context, o *Outbox, x *exchange) error {
	by, err := p.who(ctx, o, x)
	if err != nil {
		return err
	}
	err = o.Store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) (err error) {
		if p.rel, err = p.follower(ctx, tx, by); err != nil {
			return err
		}
		written, err := handler.Written(ctx, tx, db.Owned{ID: p.rel.Activity, Actor: p.rel.Actor})
		x.spelling = x.spelling.Add(p.rel.Activity, written)
		return err
	})
	if err != nil {
		return err
	}
	p.answered = doing(vocab.Follow, p.rel.Activity, p.rel.Actor, x.actor.ID) // not as it came: what others write may be nothing to prove
	if x.target, err = o.reach(ctx, x, p.rel.Actor); err != nil {
		return err
	}
	x.to = []vocab.ID{p.rel.Actor}
	x.name(x.target)
	return nil
}

// who returns the actor whose Follow is answered, empty when the Follow itself is named.
func (p *answerFollow) who(ctx context.Context, o *Outbox, x *exchange) (vocab.ID, error) {
	if p.ActorURI == "" {
		_, err := identifier("activityId", p.ActivityID)
		return "", err
	}
	return o.actorID(ctx, x, p.ActorURI)
}

func (p *answerFollow) follower(ctx context.Context, tx *db.Tx, by vocab.ID) (rel *db.Relationship, err error) {
	if by != "" {
		rel, err = tx.Relationship(ctx, db.Follower, by)
	} else {
		rel, err = p.made(ctx, tx)
	}
	if err == nil && rel == nil {
		err = fault.New(fault.NotFound, "there is no such Follow to answer").WithCode("not_followed").At("/params")
	}
	return rel, err
}

// made returns the follow that the named Follow made.
func (p *answerFollow) made(ctx context.Context, tx *db.Tx) (*db.Relationship, error) {
	all, err := tx.RelationshipsBy(ctx, db.Follower, vocab.IDOf(p.ActivityID))
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, ambiguous()
	}
	return &all[0], nil
}

// ambiguous says that several actors of one server use an id.
func ambiguous() error {
	return fault.New(fault.Conflict, "several actors of that server use this id: give actorUri instead").WithCode("ambiguous_id").At("/params/activityId")
}

func (p *answerFollow) subject() string { return "follower " + string(p.rel.Actor) }

func (p *acceptFollow) construct(*Outbox, *exchange) (string, any) { return vocab.Accept, p.answered }
func (p *rejectFollow) construct(*Outbox, *exchange) (string, any) { return vocab.Reject, p.answered }

func (p *acceptFollow) settled(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error) {
	rel, err := p.follower(ctx, tx, p.rel.Actor)
	if err != nil {
		return "", err
	}
	if rel.Activity != p.rel.Activity {
		return "", fault.New(fault.Conflict, "another Follow came meanwhile")
	}
	if rel.Status != db.Accepted {
		return "", nil
	}
	before, err := tx.LatestActivity(ctx, vocab.Accept, x.actor.ID, rel.Activity)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

func (p *rejectFollow) settled(ctx context.Context, tx *db.Tx, _ *exchange) (vocab.ID, error) {
	rel, err := p.follower(ctx, tx, p.rel.Actor)
	if err == nil && rel.Activity != p.rel.Activity {
		err = fault.New(fault.Conflict, "another Follow came meanwhile")
	}
	return "", err
}

// actorID returns the id that actorUri is, or of the actor whose handle it is.
func (o *Outbox) actorID(ctx context.Context, x *exchange, value string) (vocab.ID, error) {
	if id, err := vocab.ParseID(value); err == nil {
		return id, nil
	}
	a, err := o.findActor(ctx, x, "actorUri", value)
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

func followingOf(actor vocab.ID) string { return "following " + string(actor) }

func present(name, value string) error {
	if value == "" {
		return bad(name, name+" is missing")
	}
	return nil
}

// storedDoing returns a Follow or Block of the user's as it is stored, to be embedded; when it is not there any more, what
// it must have said.
func storedDoing(ctx context.Context, tx *db.Tx, kind string, id, actor, object vocab.ID) (vocab.Doc, error) {
	stored, err := tx.Activity(ctx, id)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return doing(kind, id, actor, object), nil
	}
	d, err := vocab.ParseDoc(stored.Raw)
	if err != nil {
		return nil, fmt.Errorf("read stored %s: %w", kind, err)
	}
	return embedded(d), nil
}

func doing(kind string, id, actor, object vocab.ID) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": kind, "actor": string(actor), "object": string(object)}
}
