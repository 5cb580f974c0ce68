package outbox

import (
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAJobCountsWhatIsSkippedFromTheStart(t *testing.T) {
	t.Parallel()
	j := showJob(uuid.New(), []user.Inbox{
		{URL: "https://p.example/inbox", Host: "p.example", Targets: []vocab.ID{"https://p.example/a", "https://p.example/b"}},
		{URL: "https://q.example/inbox", Host: "q.example", Targets: []vocab.ID{"https://q.example/c"}, Skip: "blocked"},
	})
	if want := (user.JobCounts{Total: 2, Pending: 1, Skipped: 1}); j.Counts != want || j.Recipients != 2 {
		t.Errorf("%+v for %d recipients, want %+v for 2", j.Counts, j.Recipients, want)
	}
}
