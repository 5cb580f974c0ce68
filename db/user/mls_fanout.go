package user

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Addressee is an actor who gets the messages of a conversation from its host.
type Addressee struct {
	ConversationMember
	Blocked     bool // the host blocks the actor
	Inbox       vocab.ID
	SharedInbox vocab.ID
}

// ListAddressees returns the members of a conversation, and those former members whose LeftSeq
// is the parameter left.
func (t Hosted) ListAddressees(ctx context.Context, id uuid.UUID, left int64) ([]Addressee, error) {
	if all, are := t.ahead.asked.addressesTo(id, left); are {
		return all, nil
	}
	return collect[Addressee](ctx, t.tx, "list who is told", listAddressees, id, left)
}

const listAddressees = `SELECT ` + memberColumns + `,
		EXISTS (SELECT FROM blocks b WHERE b.actor_uri = m.actor_uri AND b.direction = 'outbound') AS blocked, coalesce(a.inbox, '') AS inbox, coalesce(a.shared_inbox, '') AS shared_inbox
	FROM conversation_members m LEFT JOIN actors a ON a.uri = m.actor_uri
	WHERE m.conversation_id = $1 AND (m.left_seq IS NULL OR m.left_seq = $2) ORDER BY m.joined_seq, m.actor_uri`

// NoteForeign stores that the servers of these actors in a conversation support only the SWICG
// draft.
func (t Hosted) NoteForeign(ctx context.Context, id uuid.UUID, actors []vocab.ID) error {
	_, err := t.execBeside(ctx, "note who is foreign", `UPDATE conversation_members SET lightweb = false WHERE conversation_id = $1 AND actor_uri = ANY($2::text[])`, id, texts(actors))
	return err
}

// HasForeign reports whether a conversation has a member whose server supports only the SWICG
// draft. The actors in the parameter "but" do not count.
func (t Hosted) HasForeign(ctx context.Context, id uuid.UUID, but []vocab.ID) (has bool, err error) {
	err = t.row(ctx, "look for foreign members", `SELECT EXISTS (SELECT FROM conversation_members WHERE conversation_id = $1 AND left_seq IS NULL AND NOT lightweb AND actor_uri <> ALL($2::text[]))`,
		[]any{id, texts(but)}, &has)
	return has, err
}

// EnqueueAll stores several jobs of the user. Each job has a delivery to each of the inboxes. The
// jobs are stored with the next statement of the transaction or with its commit. EnqueueAll does
// not store the fields Instance, Forwarded and FollowersDigest. Each job must have an activity
// that was not enqueued before. An inbox gets jobs with the same Object in the order of the
// parameter jobs.
func (t Deliveries) EnqueueAll(ctx context.Context, jobs []Job, inboxes []Inbox, due time.Time) error {
	if len(jobs) == 0 || len(inboxes) == 0 {
		return nil
	}
	type column struct{ ids, activities, objects, types, audiences, urls, hosts, targets, skips []string }
	var c column
	bodies, hashes := [][]byte{}, [][]byte{}
	for _, j := range jobs {
		audience, err := json.Marshal(texts(j.Audience)) // SQL has no array of arrays of different lengths
		if err != nil {
			return fmt.Errorf("store deliveries: %w", err)
		}
		c.ids, c.activities, c.objects = append(c.ids, j.ID.String()), append(c.activities, string(j.Activity)), append(c.objects, string(j.Object))
		c.types, c.audiences = append(c.types, j.Type), append(c.audiences, string(audience))
		bodies, hashes = append(bodies, j.Body), append(hashes, j.dedupe(inboxes))
	}
	for _, i := range inboxes {
		targets, err := json.Marshal(texts(i.Targets))
		if err != nil {
			return fmt.Errorf("store deliveries: %w", err)
		}
		c.urls, c.hosts, c.targets, c.skips = append(c.urls, string(i.URL)), append(c.hosts, i.Host), append(c.targets, string(targets)), append(c.skips, i.Skip)
	}
	t.owes = true
	t.unsent.later(`
		WITH job AS (
			SELECT * FROM unnest(@ids::uuid[], @activities::text[], @objects::text[], @types::text[], @audiences::text[], @bodies::bytea[], @hashes::bytea[]) WITH ORDINALITY AS j (id, activity, object, type, audience, body, hash, place)
		), stored AS (
			INSERT INTO delivery_jobs (id, activity_uri, object_uri, type, body, created_at, audience, signer, dedupe_hash)
			SELECT id, activity, nullif(object, ''), type, body, @due, ARRAY(SELECT jsonb_array_elements_text(audience::jsonb)), 'user', hash FROM job
		)
		INSERT INTO deliveries (job_id, inbox, host, targets, status, last_error, next_at, created_at, updated_at, forwarded)
		SELECT job.id, url, host, ARRAY(SELECT jsonb_array_elements_text(targets::jsonb)), CASE skip WHEN '' THEN 'pending' ELSE 'skipped' END, nullif(skip, ''), @due, @due, @due, false
		FROM job, unnest(@urls::text[], @hosts::text[], @targets::text[], @skips::text[]) AS i (url, host, targets, skip) ORDER BY job.place`,
		named{"ids": c.ids, "activities": c.activities, "objects": c.objects, "types": c.types, "audiences": c.audiences, "bodies": bodies, "hashes": hashes,
			"due": due, "urls": c.urls, "hosts": c.hosts, "targets": c.targets, "skips": c.skips})
	return nil
}
