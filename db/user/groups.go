package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Group is a set of actors that the user addresses together.
type Group struct {
	ID       uuid.UUID
	Name     string
	URI      vocab.ID
	Activity vocab.ID // the Create of the group
	Members  []vocab.ID
}

const readGroups = `SELECT g.id, g.name, g.uri, g.activity_uri AS activity,
	ARRAY(SELECT m.actor_uri FROM group_members m WHERE m.group_id = g.id ORDER BY m.actor_uri) AS members FROM groups g`

// List returns all groups of the user, by name.
func (t Groups) List(ctx context.Context) ([]Group, error) {
	return collect[Group](ctx, t.tx, "list groups", readGroups+` ORDER BY g.name`)
}

// Find returns the group with this name, nil when there is none.
func (t Groups) Find(ctx context.Context, name string) (*Group, error) {
	return one[Group](ctx, t.tx, "read group", readGroups+` WHERE g.name = $1`, name)
}

// Add makes a group without members.
func (t Groups) Add(ctx context.Context, g Group, now time.Time) error {
	_, err := t.exec(ctx, "add group", `INSERT INTO groups (id, name, uri, activity_uri, created_at) VALUES (@id, @name, @uri, @activity, @now)`,
		named{"id": g.ID, "name": g.Name, "uri": g.URI, "activity": g.Activity, "now": now})
	return err
}

// Remove removes a group. From then on a post to the group reaches only the actors that the
// post names.
func (t Groups) Remove(ctx context.Context, id uuid.UUID) error {
	_, err := t.exec(ctx, "remove group", `DELETE FROM groups WHERE id = $1`, id)
	return err
}

// FindMembership returns the id of the Add that made an actor a member of a group, empty when
// it is no member.
func (t Groups) FindMembership(ctx context.Context, group uuid.UUID, actor vocab.ID) (vocab.ID, error) {
	type row struct{ Activity vocab.ID }
	r, err := one[row](ctx, t.tx, "read group", `SELECT activity_uri AS activity FROM group_members WHERE group_id = $1 AND actor_uri = $2`, group, actor)
	if err != nil || r == nil {
		return "", err
	}
	return r.Activity, nil
}

// ListOf returns the uris of the groups that an actor is a member of.
func (t Groups) ListOf(ctx context.Context, actor vocab.ID) (groups []vocab.ID, err error) {
	err = t.query(ctx, "read groups", column(&groups), `SELECT g.uri FROM groups g JOIN group_members m ON m.group_id = g.id WHERE m.actor_uri = $1`, actor)
	return groups, err
}

// AddMember makes an actor a member of a group, unless the actor is one already. The parameter
// activity is the id of the Add.
func (t Groups) AddMember(ctx context.Context, group uuid.UUID, actor, activity vocab.ID, now time.Time) error {
	_, err := t.exec(ctx, "add member", `INSERT INTO group_members (group_id, actor_uri, activity_uri, added_at) VALUES (@group, @actor, @activity, @now) ON CONFLICT DO NOTHING`,
		named{"group": group, "actor": actor, "activity": activity, "now": now})
	return err
}

// RemoveMember removes an actor from a group.
func (t Groups) RemoveMember(ctx context.Context, group uuid.UUID, actor vocab.ID) error {
	_, err := t.exec(ctx, "remove member", `DELETE FROM group_members WHERE group_id = $1 AND actor_uri = $2`, group, actor)
	return err
}

// LeaveAll removes an actor from all groups.
func (t Groups) LeaveAll(ctx context.Context, actor vocab.ID) error {
	_, err := t.exec(ctx, "remove member", `DELETE FROM group_members WHERE actor_uri = $1`, actor)
	return err
}

// MoveMember replaces an actor (from) by another one (to) in all groups, except groups that are
// being deleted. If there is a block between the new actor and the user, the old one only
// leaves the groups.
func (t Groups) MoveMember(ctx context.Context, from, to vocab.ID) error {
	_, err := t.exec(ctx, "move member", `INSERT INTO group_members (group_id, actor_uri, activity_uri, added_at)
		SELECT m.group_id, $2, m.activity_uri, m.added_at FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.actor_uri = $1
			AND NOT EXISTS (SELECT FROM blocks WHERE digest = $3)
		FOR KEY SHARE OF g ON CONFLICT DO NOTHING`, from, to, schema.Digest(to))
	if err != nil {
		return err
	}
	return t.LeaveAll(ctx, from)
}

// Unnamed is a recipient that an object reaches through a group. No document names this recipient.
type Unnamed struct {
	Group vocab.ID
	Actor vocab.ID
	Inbox vocab.ID
	Still bool // the actor is a member of the group now
}

// ListRecipients returns the members of the groups, but leaves out each actor of which the
// database has no copy. The result "found" is the number of these groups that exist.
func (t Groups) ListRecipients(ctx context.Context, groups []vocab.ID) (members []Unnamed, found int, err error) {
	if found, err = t.count(ctx, `SELECT count(*) FROM groups WHERE uri = ANY($1)`, texts(groups)); err != nil {
		return nil, 0, err
	}
	members, err = collect[Unnamed](ctx, t.tx, "list members", `SELECT g.uri AS group, a.uri AS actor, a.inbox, true AS still
		FROM groups g JOIN group_members m ON m.group_id = g.id JOIN actors a ON a.uri = m.actor_uri
		WHERE g.uri = ANY($1) ORDER BY a.uri, g.uri`, texts(groups))
	return members, found, err
}

// StillMembers returns the recipients that are members of their group now. It does not read the
// field Still.
func (t Groups) StillMembers(ctx context.Context, recipients []Unnamed) ([]Unnamed, error) {
	if len(recipients) == 0 {
		return nil, nil
	}
	groups, actors := make([]string, len(recipients)), make([]string, len(recipients))
	for n, r := range recipients {
		groups[n], actors[n] = string(r.Group), string(r.Actor)
	}
	return collect[Unnamed](ctx, t.tx, "list members", `SELECT g.uri AS group, a.uri AS actor, a.inbox, true AS still
		FROM unnest($1::text[], $2::text[]) AS r (group_uri, actor_uri) JOIN groups g ON g.uri = r.group_uri
		JOIN group_members m ON m.group_id = g.id AND m.actor_uri = r.actor_uri JOIN actors a ON a.uri = m.actor_uri
		ORDER BY a.uri, g.uri`, groups, actors)
}

// AddUnnamed stores the recipients that one of the user's objects has through groups.
func (t Groups) AddUnnamed(ctx context.Context, object vocab.ID, recipients []Unnamed) error {
	if len(recipients) == 0 {
		return nil
	}
	groups, actors := make([]string, len(recipients)), make([]string, len(recipients))
	for n, r := range recipients {
		groups[n], actors[n] = string(r.Group), string(r.Actor)
	}
	t.touched.touch(0, object)
	_, err := t.execBeside(ctx, "store recipients", `INSERT INTO unnamed_recipients (object_uri, group_uri, actors)
		SELECT $1, g, array_agg(DISTINCT a ORDER BY a) FROM unnest($2::text[], $3::text[]) AS r (g, a) GROUP BY g`, object, groups, actors)
	return err
}

// ListUnnamed returns the recipients that one of the user's objects got through groups.
func (t Groups) ListUnnamed(ctx context.Context, object vocab.ID) ([]Unnamed, error) {
	return collect[Unnamed](ctx, t.tx, "read recipients", `SELECT u.group_uri AS group, a.uri AS actor, a.inbox,
			EXISTS (SELECT FROM groups g JOIN group_members m ON m.group_id = g.id WHERE g.uri = u.group_uri AND m.actor_uri = a.uri) AS still
		FROM unnamed_recipients u JOIN actors a ON a.uri = ANY(u.actors)
		WHERE u.object_uri = $1 ORDER BY a.uri, u.group_uri`, object)
}
