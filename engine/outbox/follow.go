package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// follow asks an actor to send its posts to the user (ActivityPub §6.5).
type follow struct {
	ActorURI string `json:"actorUri" schema:"actor"`

	actor vocab.ID
}

func (p *follow) checkParams() error { return checkPresent("actorUri", p.ActorURI) }

func (p *follow) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if x.counterpart, err = f.findActor(ctx, x, "actorUri", p.ActorURI); err != nil {
		return err
	}
	if x.counterpart.ID.Same(x.actor.ID) {
		return badParam("actorUri", "nobody follows themselves")
	}
	p.actor = x.counterpart.ID
	x.to = []vocab.ID{p.actor}
	x.addNamed(x.counterpart)
	// The acquaintance is stored before the Follow is sent, because the actor's next post must
	// reach the user.
	return f.instance.Acquaintances.Add(ctx, p.actor, []vocab.Username{x.User}, true)
}

func (p *follow) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Follow, string(p.actor)
}

func (p *follow) lockName() string { return followLock(p.actor) }

func (p *follow) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	if err := checkNotBlocked(ctx, tx, p.actor); err != nil {
		return "", err
	}
	rel, err := tx.Relationships.Find(ctx, user.Following, p.actor)
	if err != nil || rel == nil || rel.Status == user.Rejected {
		return "", err
	}
	return rel.Activity, nil
}

// unfollow undoes a follow.
type unfollow struct {
	ActorURI string `json:"actorUri" schema:"actor"`

	actor  vocab.ID
	undone vocab.Doc
}

func (p *unfollow) checkParams() error { return checkPresent("actorUri", p.ActorURI) }

func (p *unfollow) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	id, err := f.actorID(ctx, x, p.ActorURI)
	if err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		rel, err := p.readFollowing(ctx, tx, id)
		if err != nil {
			return err
		}
		p.actor = rel.Actor
		p.undone, err = readStoredActivity(ctx, tx, vocab.Follow, rel.Activity, x.actor.ID, rel.Actor)
		return err
	})
	if err != nil {
		return err
	}
	return f.addressCounterpart(ctx, x, p.actor)
}

func (p *unfollow) readFollowing(ctx context.Context, tx *user.Tx, actor vocab.ID) (*user.Relationship, error) {
	rel, err := tx.Relationships.Find(ctx, user.Following, actor)
	if err != nil {
		return nil, err
	}
	if rel == nil {
		return nil, fault.New(fault.NotFound, "the actor is not followed").WithCode("not_following").At("/params/actorUri")
	}
	return rel, nil
}

func (p *unfollow) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Undo, p.undone
}

func (p *unfollow) lockName() string { return followLock(p.actor) }

func (p *unfollow) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	_, err := p.readFollowing(ctx, tx, p.actor)
	return "", err
}

// answerFollow is the common part of AcceptFollow and RejectFollow. Its parameters name the
// Follow that is answered, either by its id or by its sender.
type answerFollow struct {
	ActivityID string `json:"activityId" schema:"activity,either"`
	ActorURI   string `json:"actorUri" schema:"actor,either"`

	rel      *user.Relationship
	answered vocab.Doc
}

// acceptFollow makes an actor a follower of the user. rejectFollow refuses a Follow, or ends
// one that was accepted (ActivityPub §7.5).
type (
	acceptFollow struct{ answerFollow }
	rejectFollow struct{ answerFollow }
)

func (p *answerFollow) checkParams() error {
	return checkEither("activityId", p.ActivityID, "actorUri", p.ActorURI)
}

func (p *answerFollow) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	by, err := p.findFollower(ctx, f, x)
	if err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		if p.rel, err = p.readFollow(ctx, tx, by); err != nil {
			return err
		}
		written, err := handler.Written(ctx, tx, user.Owned{ID: p.rel.Activity, Actor: p.rel.Actor})
		x.spelling = x.spelling.Add(p.rel.Activity, written)
		return err
	})
	if err != nil {
		return err
	}
	// The answer contains a new description of the Follow, not the Follow as it was received. The
	// user's proof signs the canonical form of the whole answer (RFC 8785), and a received document
	// may contain numbers that have no such form.
	p.answered = describeActivity(vocab.Follow, p.rel.Activity, p.rel.Actor, x.actor.ID)
	return f.addressCounterpart(ctx, x, p.rel.Actor)
}

// findFollower returns the id of the actor whose Follow is answered. The id is empty if the
// action names the Follow itself.
func (p *answerFollow) findFollower(ctx context.Context, f *finder, x *exchange) (vocab.ID, error) {
	if p.ActorURI == "" {
		_, err := parseIdentifier("activityId", p.ActivityID)
		return "", err
	}
	return f.actorID(ctx, x, p.ActorURI)
}

func (p *answerFollow) readFollow(ctx context.Context, tx *user.Tx, by vocab.ID) (rel *user.Relationship, err error) {
	if by != "" {
		rel, err = tx.Relationships.Find(ctx, user.Follower, by)
	} else {
		rel, err = p.readNamedFollow(ctx, tx)
	}
	if err == nil && rel == nil {
		err = fault.New(fault.NotFound, "there is no such Follow to answer").WithCode("not_followed").At("/params")
	}
	return rel, err
}

// readNamedFollow returns the relationship that the named Follow made, or nil if there is none.
func (p *answerFollow) readNamedFollow(ctx context.Context, tx *user.Tx) (*user.Relationship, error) {
	all, err := tx.Relationships.FindBy(ctx, user.Follower, vocab.IDOf(p.ActivityID))
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, refuseAmbiguous()
	}
	return &all[0], nil
}

// refuseAmbiguous refuses an id that several actors of one server use.
func refuseAmbiguous() error {
	return fault.New(fault.Conflict, "several actors of that server use this id: give actorUri instead").WithCode("ambiguous_id").At("/params/activityId")
}

func (p *answerFollow) lockName() string { return "follower " + string(p.rel.Actor) }

func (p *acceptFollow) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Accept, p.answered
}
func (p *rejectFollow) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Reject, p.answered
}

func (p *acceptFollow) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	rel, err := p.readFollow(ctx, tx, p.rel.Actor)
	if err != nil {
		return "", err
	}
	if rel.Activity != p.rel.Activity {
		return "", fault.New(fault.Conflict, "another Follow came meanwhile")
	}
	if rel.Status != user.Accepted {
		return "", nil
	}
	before, err := tx.Activities.Latest(ctx, vocab.Accept, x.actor.ID, rel.Activity)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

func (p *rejectFollow) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	rel, err := p.readFollow(ctx, tx, p.rel.Actor)
	if err == nil && rel.Activity != p.rel.Activity {
		err = fault.New(fault.Conflict, "another Follow came meanwhile")
	}
	return "", err
}

// actorID returns the id in the parameter actorUri. If the parameter is a handle, it returns the
// id of the actor with this handle.
func (f *finder) actorID(ctx context.Context, x *exchange, value string) (vocab.ID, error) {
	if id, err := vocab.ParseID(value); err == nil {
		return id, nil
	}
	a, err := f.findActor(ctx, x, "actorUri", value)
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

func followLock(actor vocab.ID) string { return "following " + string(actor) }

func checkPresent(name, value string) error {
	if value == "" {
		return badParam(name, name+" is missing")
	}
	return nil
}

// checkEither refuses an action that has both of two parameters, or neither of them.
func checkEither(name, value, otherName, other string) error {
	if (value == "") == (other == "") {
		return badParam(name, "give either "+name+" or "+otherName)
	}
	return nil
}

// readStoredActivity returns a stored Follow or Block of the user's in the form in which another
// activity embeds it. If the activity is no longer stored, it is built anew from the arguments.
func readStoredActivity(ctx context.Context, tx *user.Tx, kind string, id, actor, object vocab.ID) (vocab.Doc, error) {
	stored, err := tx.Activities.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return describeActivity(kind, id, actor, object), nil
	}
	a, err := stored.Parse()
	if err != nil {
		return nil, err
	}
	return embedActivity(a.Doc), nil
}

func describeActivity(kind string, id, actor, object vocab.ID) vocab.Doc {
	return vocab.Doc{"id": string(id), "type": kind, "actor": string(actor), "object": string(object)}
}
