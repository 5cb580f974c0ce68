package user_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// aged is an entry of a log. It is older than the retention of messages, unless young is true.
type aged struct {
	kind       string
	generation int32
	epoch      int64
	young      bool
	stays      bool
}

var (
	retention30 = 30 * 24 * time.Hour
	longAgo     = now.Add(-90 * 24 * time.Hour)
)

func (a aged) at() time.Time {
	if a.young {
		return now
	}
	return longAgo
}

// pruneMessages prunes messages older than 30 days. The dry run and the prune must each report as
// many messages as the parameter want says.
func pruneMessages(t *testing.T, c *dbtest.Cluster, u vocab.Username, want int) {
	t.Helper()
	for _, dry := range []bool{true, false} {
		did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Messages: now.Add(-retention30), DryRun: dry})
		if err != nil || did.Messages != want {
			t.Fatalf("dry run %v: %d messages go, %v, want %d", dry, did.Messages, err, want)
		}
	}
}

// A device was off for months. It can still apply the commits made since, if its MLS group is
// still the present one.
func TestCommitsOfAnOpenLogStayForDevicesThatWereOff(t *testing.T) {
	t.Parallel()
	open := []aged{
		{kind: user.KindCommit, generation: 2, epoch: 0, stays: true},
		{kind: user.KindApplication, generation: 2, epoch: 1},
		{kind: user.KindProposal, generation: 2, epoch: 1},
		{kind: user.KindCommit, generation: 2, epoch: 1, stays: true},
		{kind: user.KindCommit, generation: 1, epoch: 7},
		{kind: user.KindCommit, generation: 1, epoch: 8, young: true, stays: true},
		{kind: user.KindApplication, generation: 2, epoch: 2, young: true, stays: true},
	}
	for _, tt := range []struct {
		name, change string
		rows         []aged
	}{
		{"active", ``, open},
		{"waits for a reset", `, status = 'reset_pending', reset_group_id = 'next'`, open},
		{"closed", `, status = 'closed'`, []aged{{kind: user.KindCommit, generation: 2, epoch: 0}, {kind: user.KindCommit, generation: 2, epoch: 1, young: true, stays: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			h := hosted(t, c, u, 4)
			var want []int64
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				for n, a := range tt.rows {
					e := entry(int64(n+1), a.epoch, a.kind, fmt.Sprint(n))
					e.Generation, e.At = a.generation, a.at()
					if tx.Hosted.AddEntries(h.ID, e); a.stays {
						want = append(want, e.Seq)
					}
				}
				return user.Exec(ctx, tx, `UPDATE mls_conversations SET generation = 2, epoch = 2`+tt.change)
			})
			pruneMessages(t, c, u, len(tt.rows)-len(want))
			read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				left, err := tx.Hosted.ListLog(ctx, h.ID, 0, 100, 1<<20)
				if got := seqs(left); !slices.Equal(got, want) {
					t.Errorf("left are the numbers %d, want %d", got, want)
				}
				return err
			})
		})
	}
}

func seqs(all []user.LogEntry) (out []int64) {
	for _, e := range all {
		out = append(out, e.Seq)
	}
	return out
}

// A member's copy keeps the same commits as the host's log. It keeps none for an invitation, for a
// frozen copy or for an outsider, and none that no host has put in order.
func TestCommitsOfAnOpenCopyStayForDevicesThatWereOff(t *testing.T) {
	t.Parallel()
	const present, former, unordered, words = 1, 2, 3, 4
	for _, tt := range []struct {
		name, change string
		left         []int
	}{
		{"joined", ``, []int{present}},
		{"waits for a reset", `UPDATE mls_joined SET status = 'reset_pending', reset_group_id = 'next'`, []int{present}},
		{"closed", `UPDATE mls_joined SET status = 'closed'`, nil},
		{"frozen", `UPDATE mls_joined SET status = 'frozen'`, nil},
		{"an invitation", `UPDATE conversations SET confirmed = false, partner_uri = 'https://peer.example/users/bob'`, nil},
		{"the user was removed", `UPDATE conversation_members SET left_seq = 9 WHERE actor_uri LIKE '%/alice'`, nil},
		{"without a host", `UPDATE conversations SET host_uri = ''`, []int{present}},
		{"of an outsider", `UPDATE conversations SET host_uri = ''; DELETE FROM conversation_members WHERE actor_uri LIKE '%/bob'`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			j := joined(t, c, u)
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				for n, kind := range map[int]string{present: user.KindCommit, former: user.KindCommit, unordered: user.KindCommit, words: user.KindApplication} {
					e := received(j, int64(n), fmt.Sprint(n))
					e.Kind, e.Generation, e.Epoch, e.At = kind, 2, int64(n), longAgo
					switch n {
					case former:
						e.Generation = 1
					case unordered:
						e.Seq = nil
					}
					if _, err := tx.Messages.Add(ctx, e); err != nil {
						return err
					}
				}
				unplaced := received(j, 5, "5")
				unplaced.Kind, unplaced.Conversation, unplaced.Seq, unplaced.At = user.KindCommit, nil, nil, longAgo
				if _, err := tx.Messages.Add(ctx, unplaced); err != nil {
					return err
				}
				if err := tx.Conversations.Join(ctx, j.ID, []vocab.ID{dbtest.AliceActor, bob}, user.RoleMember, 0); err != nil {
					return err
				}
				return user.Exec(ctx, tx, `UPDATE mls_joined SET generation = 2, epoch = 2`)
			})
			if tt.change != "" {
				run(t, databaseOf(t, c, u), tt.change)
			}
			pruneMessages(t, c, u, 5-len(tt.left))
			var got []int
			for _, content := range held(t, databaseOf(t, c, u), `SELECT convert_from(content, 'UTF8') FROM mls_inbox ORDER BY 1`) {
				n, err := strconv.Atoi(strings.Trim(content, `()"`))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, n)
			}
			if !slices.Equal(got, tt.left) {
				t.Errorf("left are %d, want %d", got, tt.left)
			}
		})
	}
}

// A member that commits without end cannot fill the database. Once a conversation has too many
// commits, or too large ones, pruning removes the oldest by age.
func TestCommitsThatStayAreBounded(t *testing.T) {
	t.Parallel()
	const columns = ` (conversation_id, seq, generation, epoch, kind, sender_uri, content, content_hash, `
	for _, tt := range []struct {
		name, content string
		n, left       int
	}{
		{"in number", `'\x00'::bytea`, 10_700, 10_000},
		{"in bytes", `convert_to(repeat('x', 1 << 20), 'UTF8')`, 80, 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			database := databaseOf(t, c, u)
			h, other, j := hosted(t, c, u, 0), hosted(t, c, u, 0), joined(t, c, u)
			run(t, database, `UPDATE mls_conversations SET epoch = 20000`)
			for _, id := range []uuid.UUID{h.ID, other.ID} {
				run(t, database, `INSERT INTO mls_log`+columns+`created_at) SELECT $1::uuid, n, 0, n, 'commit', 'https://peer.example/users/bob', `+tt.content+`, int8send(n), $2::timestamptz FROM generate_series(1, $3::bigint) n`, id, longAgo, tt.n)
			}
			run(t, database, `INSERT INTO mls_inbox`+columns+`group_id, object_uri, blocked, activity, content_at, received_at)
				SELECT $1::uuid, n, 0, n, 'commit', 'https://peer.example/users/bob', `+tt.content+`, int8send(n), '', '', false, '', -1, $2::timestamptz FROM generate_series(1, $3::bigint) n`, j.ID, longAgo, tt.n)
			pruneMessages(t, c, u, 3*(tt.n-tt.left))
			for _, table := range []string{"mls_log", "mls_inbox"} {
				for _, line := range held(t, database, `SELECT min(epoch), count(*) FROM `+table+` GROUP BY conversation_id`) {
					if want := fmt.Sprintf("(%d,%d)", tt.n-tt.left+1, tt.left); line != want {
						t.Errorf("%s has left (from, number) %s, want %s", table, line, want)
					}
				}
			}
			pruneMessages(t, c, u, 0)
		})
	}
}

// A later pruning reads each commit that stays only once.
func TestAPruningReadsCommitsThatStayOnce(t *testing.T) {
	t.Parallel()
	c, u, rowsReadBy := metered(t)
	database := databaseOf(t, c, u)
	const conversations, commits, words = 4, 3000, 3000
	for range conversations {
		h, j := hosted(t, c, u, 0), joined(t, c, u)
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			var all []user.LogEntry
			for n := range int64(commits + words) {
				kind := user.KindCommit
				if n >= commits {
					kind = user.KindApplication
				}
				e := entry(n+1, n, kind, fmt.Sprint(n))
				e.At = longAgo.Add(time.Duration(n) * time.Second)
				all = append(all, e)
			}
			tx.Hosted.AddEntries(h.ID, all...)
			return nil
		})
		run(t, database, `INSERT INTO mls_inbox (conversation_id, seq, generation, epoch, kind, sender_uri, content, content_hash, group_id, object_uri, blocked, activity, content_at, received_at)
					SELECT $2::uuid, seq, 0, epoch, kind, sender_uri, content, content_hash, '', '', false, '', -1, created_at FROM mls_log WHERE conversation_id = $1::uuid`, h.ID, j.ID)
	}
	run(t, database, `ANALYZE`)
	prune := func(c *dbtest.Cluster, want int) {
		t.Helper()
		did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Messages: now.Add(-retention30)})
		if err != nil || did.Messages != want {
			t.Errorf("%d messages go, %v, want %d", did.Messages, err, want)
		}
	}
	prune(c, 2*conversations*words)
	run(t, database, `VACUUM mls_log, mls_inbox`) // entries of removed rows may still be in the indexes
	const rows = 2 * conversations * commits
	if n := rowsReadBy(func(c *dbtest.Cluster) { prune(c, 0) }, "mls_log", "mls_inbox"); n > 2*rows {
		t.Errorf("%d rows and entries of indexes were read, of %d commits that stay", n, rows)
	}
}
