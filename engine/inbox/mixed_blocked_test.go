package inbox_test

import "testing"

// The host puts no message of a member that it blocks into the log, through whichever inbox the
// message arrives. The other members continue without it. Messages that the member sends after it
// is unblocked enter the log.
func TestAHostOrdersNothingOfAMemberThatItBlocks(t *testing.T) {
	h := newMixed(t)
	h.block("p:/dave")
	h.sends(mine, "PrivateMessage", h.group.Message(), "context", h.uri)
	h.sends("us:/inbox", "PrivateMessage", h.group.PrivateProposal())
	h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.want("the log", `SELECT seq::text FROM mls_log WHERE seq > 1`)
	h.want("the state", state, "1 1 active f t")
	h.want("nothing is kept beside the log", keptMessages)
	h.want("nobody is told", `SELECT count(*)::text FROM event_outbox WHERE type IN ('mls.message.received', 'mls.recovery.reported')`, "0")
	if _, err := h.DB(h.TB, h.Alice).Exec(`DELETE FROM blocks`); err != nil {
		t.Fatal(err)
	}
	words := h.group.Message()
	h.sends(mine, "PrivateMessage", words)
	h.want("the log once dave is unblocked", logged, lineOf("2 1 application dave", words))
}
