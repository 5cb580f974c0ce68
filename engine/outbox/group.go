package outbox

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of groups.
const (
	maxGroups    = 100
	maxMembers   = 500 // of a group
	maxGroupName = 64  // characters
)

// groupName names a group of the user's. Activities about groups are stored, but sent to nobody.
type groupName struct {
	Name string `json:"name" schema:"group"`
}

func (p *groupName) checkParams() error {
	n := utf8.RuneCountInString(p.Name)
	if n == 0 || n > maxGroupName || slices.ContainsFunc([]rune(p.Name), func(r rune) bool { return r != '-' && isOutsideHashtag(r) }) {
		return badParam("name", "the name of a group has 1 to 64 letters, digits, hyphens and underscores")
	}
	return nil
}

// lockName returns the same lock for all groups of the user, because createGroup must count them
// before it adds one.
func (p *groupName) lockName() string { return "groups" }

// readGroup returns the group with the name in the parameters.
func (p *groupName) readGroup(ctx context.Context, tx *user.Tx) (*user.Group, error) {
	g, err := tx.Groups.Find(ctx, p.Name)
	if err == nil && g == nil {
		err = fault.New(fault.NotFound, "there is no such group").WithCode("no_group").At("/params/name")
	}
	return g, err
}

// findGroup finds the group that the action changes.
func (p *groupName) findGroup(ctx context.Context, f *finder, x *exchange) error {
	return f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		x.group, err = p.readGroup(ctx, tx)
		return err
	})
}

// checkUnchanged refuses to change a group that was deleted meanwhile, even if another group
// has its name now.
func (p *groupName) checkUnchanged(ctx context.Context, tx *user.Tx, x *exchange) (*user.Group, error) {
	g, err := p.readGroup(ctx, tx)
	if err == nil && g.ID != x.group.ID {
		err = fault.New(fault.Conflict, "the group was deleted meanwhile").WithCode("changed_meanwhile").At("/params/name")
	}
	return g, err
}

// createGroup makes a group.
type createGroup struct{ groupName }

// findRecipients gives the group an id that does not reveal the group's name.
func (p *createGroup) findRecipients(_ context.Context, f *finder, x *exchange) error {
	id := uuid.New()
	x.group = &user.Group{ID: id, Name: p.Name, URI: f.local.Groups(x.User) + vocab.ID("/"+id.String())}
	return nil
}

func (p *createGroup) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Create, vocab.Doc{"id": string(x.group.URI), "type": "Collection", "name": p.Name, "attributedTo": string(x.actor.ID)}
}

func (p *createGroup) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	groups, err := tx.Groups.List(ctx)
	if err != nil {
		return "", err
	}
	for _, g := range groups {
		if g.Name == p.Name {
			return g.Activity, nil
		}
	}
	if len(groups) >= maxGroups {
		return "", fault.New(fault.Conflict, "there are 100 groups already: delete one first").WithCode("too_many_groups")
	}
	return "", nil
}

// deleteGroup deletes a group. Posts that were written to the group stay.
type deleteGroup struct{ groupName }

func (p *deleteGroup) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.findGroup(ctx, f, x)
}

func (p *deleteGroup) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Delete, buildTombstone(x.group.URI, "Collection", x.now)
}

func (p *deleteGroup) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	_, err := p.checkUnchanged(ctx, tx, x)
	return "", err
}

// addToGroup makes an actor a member of a group. The actor is not told.
type addToGroup struct {
	groupName
	ActorURI string `json:"actorUri" schema:"actor"`
}

func (p *addToGroup) checkParams() error {
	if err := p.groupName.checkParams(); err != nil {
		return err
	}
	return checkPresent("actorUri", p.ActorURI)
}

func (p *addToGroup) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if err := p.findGroup(ctx, f, x); err != nil {
		return err
	}
	if x.counterpart, err = f.findActor(ctx, x, "actorUri", p.ActorURI); err != nil {
		return err
	}
	if x.counterpart.ID.Same(x.actor.ID) {
		return badParam("actorUri", "nobody is in their own groups")
	}
	return f.instance.Acquaintances.Add(ctx, x.counterpart.ID, []vocab.Username{x.User}, false)
}

func (p *addToGroup) constructObject(_ *actor.Local, x *exchange) (string, any) {
	x.target = x.group.URI
	return vocab.Add, string(x.counterpart.ID)
}

func (p *addToGroup) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	if err := checkNotBlocked(ctx, tx, x.counterpart.ID); err != nil {
		return "", err
	}
	g, err := p.checkUnchanged(ctx, tx, x)
	if err != nil {
		return "", err
	}
	earlier, err := tx.Groups.FindMembership(ctx, g.ID, x.counterpart.ID)
	if err == nil && earlier == "" && len(g.Members) >= maxMembers {
		err = fault.New(fault.Conflict, "the group has 500 members already").WithCode("too_many_members").At("/params/name")
	}
	return earlier, err
}

// removeFromGroup takes an actor out of a group. Later notes to the group do not reach the
// actor, and neither do edits of earlier notes.
type removeFromGroup struct {
	addToGroup
	member vocab.ID
}

func (p *removeFromGroup) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if err := p.findGroup(ctx, f, x); err != nil {
		return err
	}
	if p.member, err = f.actorID(ctx, x, p.ActorURI); err != nil {
		return err
	}
	if n := slices.IndexFunc(x.group.Members, p.member.Same); n >= 0 {
		p.member = x.group.Members[n] // the id in the form of the actor's own server
	}
	return nil
}

func (p *removeFromGroup) constructObject(_ *actor.Local, x *exchange) (string, any) {
	x.target = x.group.URI
	return vocab.Remove, string(p.member)
}

func (p *removeFromGroup) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	g, err := p.checkUnchanged(ctx, tx, x)
	if err != nil {
		return "", err
	}
	there, err := tx.Groups.FindMembership(ctx, g.ID, p.member)
	if err == nil && there == "" {
		err = fault.New(fault.NotFound, "the actor is not in the group").WithCode("not_in_group").At("/params/actorUri")
	}
	return "", err
}

// addressGroups makes the members of the user's groups recipients. No document names these
// members. They are read only after the named actors and the parent were fetched, because those
// fetches can take long. So members that were removed or blocked meanwhile are left out.
// admitRecipients checks the members once more.
func (f *finder) addressGroups(ctx context.Context, x *exchange, groups []vocab.ID) error {
	if len(groups) == 0 {
		return nil
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	var members []user.Unnamed
	found := 0
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		members, found, err = tx.Groups.ListRecipients(ctx, groups)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("find members: %w", err)
	case found < len(groups):
		return badParam("to", "to and cc name a group that there is not")
	case len(members) == 0:
		return badParam("to", "nobody is in the groups that to and cc name")
	}
	x.unnamed = append(x.unnamed, members...)
	return nil
}

// addressMembers adds the recipients that the object has through a group, if they are still
// members of the group. As in addressGroups, these recipients are read late, and admitRecipients
// checks them once more.
func (f *finder) addressMembers(ctx context.Context, x *exchange, object vocab.ID) error {
	var all []user.Unnamed
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		all, err = tx.Groups.ListUnnamed(ctx, object)
		return err
	})
	x.unnamed = append(x.unnamed, slices.DeleteFunc(all, func(r user.Unnamed) bool { return !r.Still })...)
	return err
}

// listAudience returns the ids that the activity addresses, and the groups through which it has
// further recipients. Only the user sees the groups.
func (x *exchange) listAudience() []vocab.ID {
	all := x.activity.All()
	for _, r := range x.unnamed {
		if !slices.Contains(all, r.Group) {
			all = append(all, r.Group)
		}
	}
	return all
}
