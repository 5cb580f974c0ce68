package cmd

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestABackupIsReported(t *testing.T) {
	bob, err := vocab.ParseUsername("bob")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	whole := admin.BackupReport{File: "b.tar.gz", Bytes: 6780, CreatedAt: at, Whole: true, Keys: true, Users: 2, Rows: 30, SHA256: "0a1b", Millis: 417, Failures: []admin.BackupFailure{}}
	lacking := whole
	lacking.Keys, lacking.Failures = false, []admin.BackupFailure{{User: bob, Error: "there is no database"}}
	exported := whole
	exported.Users, exported.Counts = 1, map[string]int{"outbox": 7, "followers": 2}
	for _, tt := range []struct {
		name           string
		report         admin.BackupReport
		terminal, json bool
		want           string
	}{
		{"to people", whole, true, false, `✓ wrote b.tar.gz in 417ms
  bytes       6780
  created_at  2026-03-01T12:00:00Z
  users       2
  rows        30
  keys        in it: keep the file secret
  sha256      0a1b
`},
		{"of one user", exported, true, false, `✓ wrote b.tar.gz in 417ms
  bytes       6780
  created_at  2026-03-01T12:00:00Z
  users       1
  rows        30
  keys        in it: keep the file secret
  sha256      0a1b
  followers   2
  outbox      7
`},
		{"to a pipe", lacking, false, false, `file: b.tar.gz
bytes: 6780
created_at: 2026-03-01T12:00:00Z
whole: true
users: 2
rows: 30
keys: not in it
sha256: 0a1b
elapsed_ms: 417
failure: bob: there is no database
`},
		{"to programs", lacking, false, true, `{"file":"b.tar.gz","bytes":6780,"created_at":"2026-03-01T12:00:00Z","whole":true,"keys":false,"users":2,"rows":30,"sha256":"0a1b","elapsed_ms":417,"failures":[{"user":"bob","error":"there is no database"}]}` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			a.out.json = tt.json
			if err := a.out.showBackup(tt.report); err != nil || out.String() != tt.want {
				t.Errorf("wrote %s, %v, want %s", out, err, tt.want)
			}
		})
	}
}

func TestARestoreIsReported(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := admin.RestoreReport{File: "b.tar.gz", CreatedAt: at, Version: "0.1.0", PublicURL: "https://example.org", Keys: true, Users: 1, Rows: 30, Fenced: 4, Blocks: 2,
		Kept: []string{"/etc/rsa.pem"}, PutAside: "lightweb_alice-replaced-1", Without: []string{}, Millis: 90}
	would := r
	would.DryRun, would.Blocks, would.PutAside, would.Kept, would.Refusal = true, 0, "", []string{}, "there are users"
	for _, tt := range []struct {
		name           string
		report         admin.RestoreReport
		terminal, json bool
		want           string
	}{
		{"to people", r, true, false, `✓ restored the backup of 2026-03-01T12:00:00Z in 90ms
  file        b.tar.gz
  lightweb    0.1.0
  public_url  https://example.org
  keys        true
  users       1
  rows        30
  fenced      4 deliveries to other servers that are not sent by themselves
  kept        /etc/rsa.pem — as it was, not as in the backup
  blocks      2 newer than the backup, taken over from the database that was put aside
  put_aside   lightweb_alice-replaced-1 — drop it when you are sure
`},
		{"what would be done, to a pipe", would, false, false, `file: b.tar.gz
created_at: 2026-03-01T12:00:00Z
lightweb: 0.1.0
public_url: https://example.org
whole: false
keys: true
users: 1
rows: 30
fenced: 4
refusal: there are users
dry_run: true
elapsed_ms: 90
`},
		{"to programs", r, false, true, `{"file":"b.tar.gz","created_at":"2026-03-01T12:00:00Z","lightweb":"0.1.0","public_url":"https://example.org","whole":false,"keys":true,"users":1,"rows":30,"fenced":4,"kept":["/etc/rsa.pem"],"without_database":[],"blocks":2,"put_aside":"lightweb_alice-replaced-1","refusal":"","dry_run":false,"elapsed_ms":90}` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			a.out.json = tt.json
			if err := a.out.showRestore(tt.report); err != nil || out.String() != tt.want {
				t.Errorf("wrote %s, %v, want %s", out, err, tt.want)
			}
		})
	}
}

// A backup whose output is cut off fails. This holds even if the reader of the output closed the
// pipe.
func TestABackupIntoAClosedPipeFails(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, err = wholly{w}.Write([]byte("x"))
	if got := failureOf(err); got.Exit != exitFailed || errors.Is(err, errClosedPipe) {
		t.Errorf("writing to a closed pipe: %v, exit code %d, want %d", err, got.Exit, exitFailed)
	}
}

func TestAnImportIsReported(t *testing.T) {
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	r := admin.ImportReport{File: "m.zip", Kind: "archive", User: alice, From: "https://old.example/users/a", Posts: 12, Added: 10, Skipped: 3, Attachments: 7, Follows: 4, Waiting: 4, Millis: 90}
	a, out := screen(true)
	want := `✓ imported m.zip in 90ms
  kind              archive
  user              alice
  from              https://old.example/users/a
  posts             12
  posts_added       10
  posts_skipped     3 — what is no post of the account's own
  attachments_left  7 — not taken over: keep the archive
  likes_left        0 — not taken over: keep the archive
  bookmarks_left    0 — not taken over: keep the archive
  blocks            0
  mutes             0
  muted_domains     0
  follows           4
  waiting           4 — a running engine sees to them one after another
  next              lightweb user move alice --from https://old.example/users/a — then move there to this account: the followers come along
`
	if err := a.out.showUserImport(r); err != nil || out.String() != want {
		t.Errorf("wrote %s, %v, want %s", out, err, want)
	}
}
