package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Rules knows with which actors conversations of users become encrypted.
type Rules interface {
	User(u vocab.Username) registry.User
}

// PairTx is what is needed of the transaction in which a conversation of two becomes another one.
type PairTx interface {
	TiesTo(ctx context.Context, some []vocab.ID) (map[vocab.ID][]string, error)
	PairConversation(ctx context.Context, partner vocab.ID) (*db.Conversation, error)
	AddPairNote(ctx context.Context, n db.PairNote) (*db.Conversation, bool, error)
	BeginUpgrade(ctx context.Context, id uuid.UUID, group string) error
	UpgradePair(ctx context.Context, c db.Conversation, own bool, now time.Time) error
	AddConversation(ctx context.Context, c db.Conversation) error
	ContinueConversation(ctx context.Context, id uuid.UUID, successor vocab.ID, own bool, now time.Time) (bool, error)
	AddEvent(ctx context.Context, e db.Event) error
}

// Reasons why something in a conversation of two is refused.
var (
	errEncrypted = unprocessable("conversation_encrypted", "the conversation with this actor is encrypted: nothing is sent to it in the open")
	errNoPair    = unprocessable("not_a_pair", "the conversation is none of two actors")
	errPairOnly  = unprocessable("pair_only", "a conversation of two stays one of two: make another one for more members").At("/commit")
	errUnrelated = fault.New(fault.Forbidden, "your rule encrypted_chat does not permit encrypted conversations with this actor").WithCode("encryption_not_permitted")
)

// CheckOpen refuses a Note in a conversation of two that is encrypted. One that was closed stays
// what it was: nothing is said in the open in its place.
func CheckOpen(c *db.Conversation) error {
	if c.Mode == db.ModeEncrypted {
		return errEncrypted
	}
	return nil
}

func (r *Registry) ruleOf(u vocab.Username) audience.Rule {
	return audience.Rule(r.Rules.User(u).Permissions.EncryptedChat)
}

// checkRule refuses an encrypted conversation with an actor that the user's rule does not name.
// Friendship needs the consent of both, so that the rule of one side speaks for both.
func checkRule(ctx context.Context, tx PairTx, rule audience.Rule, partner vocab.ID) error {
	ties, err := tx.TiesTo(ctx, []vocab.ID{partner})
	if err == nil && !rule.IsMet(ties[partner]) {
		err = errUnrelated
	}
	return err
}

// Open returns the conversation of the user with one other actor, and whether it was made: it
// begins with the private Notes of the two.
func (r *Registry) Open(ctx context.Context, u vocab.Username, partner vocab.ID) (c *db.Conversation, made bool, err error) {
	me := r.Actors.ID(u)
	if partner.Same(me) {
		return nil, false, unprocessable("invalid_parameter", "nobody writes to themselves").At("/with")
	}
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		c, made, err = tx.AddPairNote(ctx, db.PairNote{User: me, Partner: partner.Canonical(), At: r.Now()})
		return err
	})
	return c, made, err
}

// findPair returns a conversation of two, locked.
func findPair(ctx context.Context, tx *db.Tx, id uuid.UUID) (*db.Conversation, error) {
	c, err := tx.Conversation(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, errNoConversation
	case c.Partner == "":
		return nil, errNoPair
	case c.Successor != "":
		return nil, errContinued(c)
	}
	locked, err := tx.PairConversation(ctx, c.Partner)
	if err == nil && (locked == nil || locked.ID != id) {
		err = errContinued(c)
	}
	return locked, err
}

func errContinued(c *db.Conversation) error {
	return fault.New(fault.Conflict, "another conversation continues this one").WithCode("successor_exists").WithHint(string(c.Successor))
}

// Upgrade gives a conversation of two the MLS group that it becomes with the commit which adds the
// other actor: from then on, and for good, it is encrypted. Until then Notes are sent, and another
// group takes the place of one that came to nothing.
func (r *Registry) Upgrade(ctx context.Context, u vocab.Username, id uuid.UUID, groupInfo []byte) (View, error) {
	me := r.Actors.ID(u)
	group, err := readNewGroup(groupInfo, me)
	if err != nil {
		return View{}, err
	}
	var v View
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		c, err := findPair(ctx, tx, id)
		if err != nil {
			return err
		}
		if c.Mode == db.ModeEncrypted {
			return fault.New(fault.Conflict, "the conversation is encrypted already").WithCode("already_encrypted")
		}
		if err := checkRule(ctx, tx, r.ruleOf(u), c.Partner); err != nil {
			return err
		}
		if err := tx.BeginUpgrade(ctx, id, string(group.GroupID)); err != nil {
			return err
		}
		c.CreatedAt = r.Now() // of its group
		v, err = host(ctx, tx, *c, groupInfo)
		return err
	})
	return v, explainTaken(err)
}

// checkPair keeps a conversation of two one of two.
func (c *commit) checkPair(ctx context.Context, tx *db.Tx, to *db.HostedConversation, change roster) error {
	if to.Partner == "" {
		return nil
	}
	for _, a := range change.added {
		if !a.actor.Same(to.Partner) && !a.actor.Same(c.host) {
			return errPairOnly
		}
	}
	if to.Mode == db.ModeFederated && c.Caller != c.host {
		return errNoConversation // nobody was let in yet
	}
	if change.adds(to.Partner) {
		return checkRule(ctx, tx, c.rule, to.Partner)
	}
	return nil
}

func (r roster) adds(actor vocab.ID) bool {
	return slices.ContainsFunc(r.added, func(a addition) bool { return a.actor.Same(actor) })
}

// upgrade makes the conversation of two encrypted with the commit that adds the other actor.
func (c *commit) upgrade(ctx context.Context, tx *db.Tx, to *db.HostedConversation, change roster) error {
	if to.Mode != db.ModeFederated || !change.adds(to.Partner) {
		return nil
	}
	pair := db.Conversation{ID: to.ID, URI: to.URI, Host: c.host, GroupID: to.GroupID}
	if err := tx.UpgradePair(ctx, pair, true, c.now); err != nil {
		return err
	}
	to.Mode = db.ModeEncrypted
	return tellOf(ctx, tx, eventUpgraded, pair, c.host, c.host, c.now)
}

// tellOf adds an event about a conversation, which an actor made what it is.
func tellOf(ctx context.Context, tx PairTx, kind string, c db.Conversation, me, by vocab.ID, now time.Time) error {
	trust := "contact"
	if by == me {
		trust = "self"
	}
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "conversation": string(c.URI), "conversationId": c.ID.String(), "actorUri": string(by), "trust": trust}
	return tx.AddEvent(ctx, db.Event{Type: kind, Source: "local", Payload: d.JSON(), At: now})
}

// joinPair makes the conversation of the user with its host encrypted if the two alone are in the
// group that the user joins, and reports whether it did: j has its id then. It did nothing when it
// is none of two, when the user's rule does not permit it, or when the two have another encrypted
// one: j is a conversation of its own.
func joinPair(ctx context.Context, tx PairTx, a Arrival, j *db.JoinedConversation, members []vocab.ID) (bool, error) {
	isOther := func(m vocab.ID) bool { return !m.Same(a.Me) && !m.Same(j.Host) }
	if len(members) != 2 || slices.ContainsFunc(members, isOther) || j.Host.Same(a.Me) {
		return false, nil
	}
	if err := checkRule(ctx, tx, a.EncryptedChat, j.Host); err != nil {
		return false, unlessRefused(err)
	}
	c, err := tx.PairConversation(ctx, j.Host)
	if err == nil && c == nil {
		c, _, err = tx.AddPairNote(ctx, db.PairNote{User: a.Me, Partner: j.Host, At: a.Now})
	}
	switch {
	case err != nil || c.Mode == db.ModeEncrypted && c.ClosedAt == nil:
		return false, err
	case c.Mode == db.ModeEncrypted:
		return true, joinSuccessor(ctx, tx, a, *c, j)
	}
	if err := tx.BeginUpgrade(ctx, c.ID, j.GroupID); err != nil { // an upgrade of the user's own comes to nothing
		return false, err
	}
	j.ID = c.ID
	pair := db.Conversation{ID: c.ID, URI: j.URI, Host: j.Host, GroupID: j.GroupID}
	if err := tx.UpgradePair(ctx, pair, false, a.Now); err != nil {
		return false, err
	}
	return true, tellOf(ctx, tx, eventUpgraded, pair, a.Me, j.Host, a.Now)
}

func unlessRefused(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}
