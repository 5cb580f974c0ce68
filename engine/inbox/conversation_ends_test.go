package inbox_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// A host is a stranger to the user until a device of the user has joined the conversation. The
// event of the end says so, and counts against the budget of strangers.
func TestTheEndIsToldWithTheTrustInTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		joined, isFull bool
		want           []string
	}{
		"joined":                    {joined: true, want: []string{"contact"}},
		"joined, without a budget":  {joined: true, isFull: true, want: []string{"contact"}},
		"invited":                   {want: []string{"stranger"}},
		"invited, without a budget": {isFull: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			if c.isFull {
				h.Inbox.TellDaily(1) // of the Welcome
			}
			h.begun()
			if c.joined {
				h.rows(`UPDATE conversations SET confirmed = true RETURNING uri`)
			}
			err := h.state(vocab.Doc{"status": "closed", "mlsGroupId": h.group.ID, "mlsGeneration": h.reset, "mlsEpoch": 1, "lastSeq": h.seq}, "p:/dave")
			if err != nil {
				t.Fatal(err)
			}
			h.want("trust", `SELECT payload ->> 'trust' FROM event_outbox WHERE type = 'conversation.closed'`, c.want...)
		})
	}
}
