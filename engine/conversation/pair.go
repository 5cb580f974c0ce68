package conversation

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Rules returns a user's settings, which say with which actors conversations may be encrypted, and
// which actors the user mutes.
type Rules interface {
	User(u vocab.Username) registry.User
}

// Refusals in conversations of two.
var (
	errEncrypted = unprocessable("conversation_encrypted", "the conversation with this actor is encrypted: nothing is sent to it in the open")
	errNoPair    = unprocessable("not_a_pair", "the conversation is none of two actors")
	errPairOnly  = unprocessable("pair_only", "a conversation of two stays one of two: make another one for more members").At("/commit")
	errUnrelated = fault.New(fault.Forbidden, "your rule encrypted_chat does not permit encrypted conversations with this actor").WithCode("encryption_not_permitted")
)

// CheckOpen refuses a Note if the conversation of two is encrypted. It does so even after the
// conversation was closed, so that unencrypted Notes never take its place.
func CheckOpen(c *user.Conversation) error {
	if c.Mode == user.ModeEncrypted {
		return errEncrypted
	}
	return nil
}

func (r *Registry) ruleOf(u vocab.Username) audience.Rule {
	return audience.Rule(r.Rules.User(u).Permissions.EncryptedChat)
}

// checkRule refuses an encrypted conversation with an actor that does not meet the user's rule.
// The rule friendship needs the consent of both, so it is enough to check one side.
func checkRule(ctx context.Context, tx *user.Tx, rule audience.Rule, partner vocab.ID) error {
	ties, err := tx.Relationships.FindTies(ctx, []vocab.ID{partner})
	if err == nil && !rule.IsMet(ties[partner]) {
		err = errUnrelated
	}
	return err
}

// Open returns the conversation of the user with one other actor. If there is none, Open makes
// one that begins with the newest stored private Notes of the two, at most 1,000. The result
// "made" reports whether the conversation is new.
func (r *Registry) Open(ctx context.Context, u vocab.Username, partner vocab.ID) (c *user.Conversation, made bool, err error) {
	me := r.Actors.ID(u)
	if partner.Same(me) {
		return nil, false, unprocessable("invalid_parameter", "nobody writes to themselves").At("/with")
	}
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		c, made, err = tx.Pairs.AddNote(ctx, user.PairNote{User: me, Partner: partner.Canonical(), At: r.Now()})
		return err
	})
	return c, made, err
}

// findPair returns a conversation of two, and locks its row. It refuses a conversation that
// another one continues.
func findPair(ctx context.Context, tx *user.Tx, id uuid.UUID) (*user.Conversation, error) {
	c, err := tx.Conversations.Find(ctx, id)
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
	locked, err := tx.Pairs.Find(ctx, c.Partner)
	if err == nil && (locked == nil || locked.ID != id) {
		err = errContinued(c)
	}
	return locked, err
}

func errContinued(c *user.Conversation) error {
	return fault.New(fault.Conflict, "another conversation continues this one").WithCode("successor_exists").WithHint(string(c.Successor))
}

// Upgrade stores the MLS group in which a conversation of two will be encrypted. The commit that
// adds the other actor makes the conversation encrypted for good. Until then the two send Notes,
// and another Upgrade replaces the group.
func (r *Registry) Upgrade(ctx context.Context, u vocab.Username, id uuid.UUID, groupInfo []byte) (View, error) {
	me := r.Actors.ID(u)
	group, err := readNewGroup(groupInfo, me)
	if err != nil {
		return View{}, err
	}
	var v View
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		c, err := findPair(ctx, tx, id)
		if err != nil {
			return err
		}
		if c.Mode == user.ModeEncrypted {
			return fault.New(fault.Conflict, "the conversation is encrypted already").WithCode("already_encrypted")
		}
		if err := checkRule(ctx, tx, r.ruleOf(u), c.Partner); err != nil {
			return err
		}
		if err := tx.Pairs.BeginUpgrade(ctx, id, string(group.GroupID)); err != nil {
			return err
		}
		c.CreatedAt = r.Now() // the time at which its group begins
		v, err = host(ctx, tx, *c, groupInfo)
		return err
	})
	return v, explainTaken(err, "/groupInfo")
}

// checkPair refuses a commit that adds a third actor to a conversation of two. It also checks
// the host's rule when the commit adds the other actor.
func (c *commit) checkPair(ctx context.Context, tx *user.Tx, to *user.HostedConversation, change roster) error {
	if to.Partner == "" {
		return nil
	}
	for _, a := range change.added {
		if !a.actor.Same(to.Partner) && !a.actor.Same(c.host) {
			return errPairOnly
		}
	}
	if to.Mode == user.ModeFederated && c.Caller != c.host {
		return errNoConversation // nobody else has joined yet
	}
	if change.adds(to.Partner) {
		return checkRule(ctx, tx, c.rule, to.Partner)
	}
	return nil
}

func (r roster) adds(actor vocab.ID) bool {
	return slices.ContainsFunc(r.added, func(a addition) bool { return a.actor.Same(actor) })
}

// upgrade makes a conversation of two encrypted if the commit adds the other actor.
func (c *commit) upgrade(ctx context.Context, tx *user.Tx, to *user.HostedConversation, change roster) error {
	if to.Mode != user.ModeFederated || !change.adds(to.Partner) {
		return nil
	}
	pair := user.Conversation{ID: to.ID, URI: to.URI, Host: c.host, GroupID: to.GroupID}
	if err := tx.Pairs.Upgrade(ctx, pair, true, c.now); err != nil {
		return err
	}
	to.Mode = user.ModeEncrypted
	return tellChange(ctx, tx, eventUpgraded, pair, Arrival{Me: c.host, Now: c.now}, c.host)
}

// tellChange adds an event about a change of the conversation c, unless the events of strangers
// have used up their budget. The parameter by is the actor that made the change, as the actor's
// own server says.
func tellChange(ctx context.Context, tx *user.Tx, kind string, c user.Conversation, a Arrival, by vocab.ID) error {
	isIn := c.Host.Same(a.Me)
	if !isIn && !by.Same(a.Me) {
		joined, err := tx.Joined.Find(ctx, c.ID)
		if err != nil {
			return err
		}
		isIn = hasJoined(joined)
	}
	trust, err := trustIn(ctx, tx, isIn, a.Me, by)
	if err != nil || !a.tells(trust) {
		return err
	}
	d := vocab.Doc{"conversation": string(c.URI), "conversationId": c.ID.String(), "actorUri": string(by)}
	return tx.Events.Add(ctx, user.NewEvent(kind, user.SourceLocal, trust, d, a.Now))
}

// joinPair handles a Welcome to the conversation j. If the host of j says that j is the
// conversation of host and user, and the two are the only members of j, joinPair makes their
// conversation of two encrypted, gives j the id of that conversation or of its successor, and
// returns true. If both sides have upgraded at the same time, meetUpgrade may store j as closed
// instead; then joinPair returns true, too. It returns false, and j stays a separate
// conversation, in four cases: the host does not say so; j has other members; the user's rule
// does not permit encryption; or the two already have another open encrypted conversation, and
// meetUpgrade returns false.
func joinPair(ctx context.Context, tx *user.Tx, a Arrival, j *user.JoinedConversation, said *rosterSaid) (bool, error) {
	isOther := func(m vocab.ID) bool { return !m.Same(a.Me) && !m.Same(j.Host) }
	if said == nil || !said.isPair || len(said.actors) != 2 || slices.ContainsFunc(said.actors, isOther) || j.Host.Same(a.Me) {
		return false, nil
	}
	if err := checkRule(ctx, tx, a.EncryptedChat, j.Host); err != nil {
		return false, unlessRefused(err)
	}
	c, err := tx.Pairs.Find(ctx, j.Host)
	if err == nil && c == nil {
		c, _, err = tx.Pairs.AddNote(ctx, user.PairNote{User: a.Me, Partner: j.Host, At: a.Now})
	}
	switch {
	case err != nil:
		return false, err
	case c.Mode == user.ModeEncrypted && c.ClosedAt == nil:
		return meetUpgrade(ctx, tx, a, *c, j, said)
	case c.Mode == user.ModeEncrypted:
		return true, joinSuccessor(ctx, tx, a, *c, j)
	}
	if err := tx.Pairs.BeginUpgrade(ctx, c.ID, j.GroupID); err != nil { // replaces the user's own upgrade
		return false, err
	}
	j.ID = c.ID
	pair := user.Conversation{ID: c.ID, URI: j.URI, Host: j.Host, GroupID: j.GroupID}
	if err := tx.Pairs.Upgrade(ctx, pair, false, a.Now); err != nil {
		return false, err
	}
	return true, tellChange(ctx, tx, eventUpgraded, pair, a, j.Host)
}

func unlessRefused(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}
