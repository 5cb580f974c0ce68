package inbox_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

const (
	entries   = `SELECT concat_ws(' ', seq, epoch, kind, regexp_replace(sender_uri, '.*/', '')) FROM mls_log WHERE seq > 1 ORDER BY seq`
	earlyOnes = `SELECT concat_ws(' ', epoch, regexp_replace(sender_uri, '.*/', '')) FROM mls_early ORDER BY arrival`
)

// later returns the group as it is n epochs later.
func (h *hosted) later(n uint64) *mlstest.Group {
	g := *h.group
	g.Epoch += n
	return &g
}

// Activities of a member whose server knows only the SWICG draft arrive in the reverse order. The
// host acknowledges them all. Once the first commit is there, all are in the log.
func TestMessagesOfAnEpochToComeWaitForTheCommitThatBeginsIt(t *testing.T) {
	h := newMixed(t)
	last, words := h.later(2).Message(), h.later(1).Message()
	h.sends(mine, "PrivateMessage", last, "context", h.uri)
	h.sends(mine, "PrivateMessage", words)
	h.sends("us:/inbox", "PrivateMessage", words)
	h.sends(mine, "PrivateMessage", h.later(1).PrivateCommit())
	h.want("the log before the commit", entries)
	h.want("waiting", earlyOnes, "3 dave", "2 dave", "2 dave")
	h.want("the host's programs are told of nothing", `SELECT count(*)::text FROM event_outbox WHERE type LIKE 'mls.message%' OR type LIKE 'mls.recovery%'`, "0")
	h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.want("the log", entries, "2 1 commit dave", "3 2 application dave", "4 2 commit dave", "5 3 application dave")
	h.want("the state", state, "3 5 active t t")
	h.want("waiting after it", earlyOnes)
	h.sends("us:/inbox", "PrivateMessage", last)
	h.want("the log after a message came again", entries, "2 1 commit dave", "3 2 application dave", "4 2 commit dave", "5 3 application dave")
	h.want("owed", `SELECT concat_ws(' ', j.type, regexp_replace(d.targets[1], '.*/', ''), substring(convert_from(j.body, 'UTF8') FROM '/log/([0-9]+)"')) FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id
		WHERE convert_from(j.body, 'UTF8') LIKE '%PrivateMessage%' AND convert_from(j.body, 'UTF8') LIKE '%/log/%' ORDER BY j.id`, "Add erin 2", "Add erin 3", "Add erin 4", "Add erin 5")
}

// dave's commit of epoch 1 is delayed, and alice ends that epoch. The messages that dave made after
// his commit belong to a group of his own, and do not enter the log.
func TestWhatAMemberMadeAfterACommitThatLostIsDropped(t *testing.T) {
	h := newMixed(t)
	late := h.group.PrivateCommit()
	h.sends(mine, "PrivateMessage", h.later(1).PrivateCommit())
	h.sends(mine, "PrivateMessage", h.later(2).Message())
	h.sealsCommit()
	h.sends(mine, "PrivateMessage", late)
	h.want("the log", entries, "2 1 commit "+h.Alice.String())
	h.want("who has forked", forked, "forked 1 2 dave")
	h.want("waiting", earlyOnes)
}

// Messages of an earlier epoch than the one that a commit begins are dropped. Their sender's own
// commit never came.
func TestNoCommitOrdersMessagesOfAnEpochThatIsOver(t *testing.T) {
	h := newMixed(t)
	h.sends(mine, "PrivateMessage", h.later(1).PrivateCommit())
	h.sealsCommit()
	h.by = "p:/frank"
	h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.want("the log", entries, "2 1 commit "+h.Alice.String(), "3 2 commit frank")
	h.want("waiting", earlyOnes)
}

// A commit through the host's routes reaches nobody before the log has it, and a reset begins
// another group. So messages that came ahead of either belong to no epoch of the conversation.
func TestACommitOrResetThatNobodyCouldBuildOnEndsTheWait(t *testing.T) {
	for name, end := range map[string]func(*hosted){
		"a commit through the host": (*hosted).sealsCommit,
		"a reset":                   (*hosted).resets,
	} {
		t.Run(name, func(t *testing.T) {
			h := newMixed(t)
			for _, n := range []uint64{1, 2, 9} {
				h.sends(mine, "PrivateMessage", h.later(n).Message())
			}
			h.want("waiting", earlyOnes, "2 dave", "3 dave", "10 dave")
			end(h)
			h.want("waiting after it", earlyOnes)
		})
	}
}

// dave's commit of epoch 1 lost and comes late. The messages that he made after it are dropped. If
// a device of his was added since, it made the messages that wait, and they stay.
func TestALateCommitDropsNothingOfADeviceThatWasAddedSince(t *testing.T) {
	for name, isAdded := range map[string]bool{"not added": false, "added": true} {
		t.Run(name, func(t *testing.T) {
			h := newMixed(t)
			late := h.group.PrivateCommit()
			h.sealsCommit()
			if isAdded {
				h.addsAnew("p:/dave")
			}
			words := h.later(1).Message()
			h.sends(mine, "PrivateMessage", words)
			h.sends(mine, "PrivateMessage", late)
			h.by = "p:/frank"
			h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
			if isAdded {
				h.want("the log", logged, lineOf("5 4 application dave", words))
			} else {
				h.want("the log", logged)
			}
			h.want("waiting", earlyOnes)
		})
	}
}

// alice blocks dave, or the operator suspends him, while his message waits. The commit of another
// member does not order it.
func TestAMessageThatWaitsIsNotOrderedOnceItsSenderIsBlocked(t *testing.T) {
	for name, block := range map[string]func(*hosted){
		"by alice":        func(h *hosted) { h.block("p:/dave") },
		"by the operator": func(h *hosted) { h.Suspend(h.ID("p:/dave")) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newMixed(t)
			h.sends(mine, "PrivateMessage", h.later(1).PrivateCommit())
			block(h)
			h.by = "p:/frank"
			h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
			h.want("the log", entries, "2 1 commit frank")
			h.want("waiting", earlyOnes)
		})
	}
}

// frank sends dave's message of the next epoch in his own name first. Once alice has blocked frank,
// the message enters the log as dave's.
func TestACopyOfAMessageThatWaitsHidesItNot(t *testing.T) {
	h := newMixed(t)
	words := h.later(1).Message()
	h.as("p:/frank").sends(mine, "PrivateMessage", words)
	for range 2 {
		h.sends(mine, "PrivateMessage", words)
	}
	h.want("waiting", earlyOnes, "2 frank", "2 dave")
	h.block("p:/frank")
	h.sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.want("the log", entries, "2 1 commit dave", "3 2 application dave")
}

// Only members whose servers know the draft alone can be ahead of the host, and only in the group
// that the conversation has. No member makes more than 50 messages wait.
func TestFewMessagesOfAnEpochToComeWait(t *testing.T) {
	h := newMixed(t)
	h.by = "p:/erin"
	h.sends(mine, "PrivateMessage", h.later(1).Message())
	h.Actor("q:/mallory")
	h.by = "q:/mallory"
	h.sends(mine, "PrivateMessage", h.later(1).Message())
	h.by = "p:/dave"
	h.sends(mine, "PublicMessage", h.later(1).Plain(h.device))
	h.sends(mine, "PrivateMessage", h.later(1).LongMessage(300<<10))
	h.want("waiting", earlyOnes)
	for range 51 {
		h.sends(mine, "PrivateMessage", h.later(1).Message())
	}
	h.want("how many wait", `SELECT count(*)::text FROM mls_early`, "50")
	h.by = "p:/frank"
	h.sends(mine, "PrivateMessage", h.later(1).Message())
	h.want("one of another member", `SELECT count(*)::text FROM mls_early`, "51")
}

// sealsCommit ends the epoch with a commit by alice's device.
func (h *hosted) sealsCommit() {
	h.Helper()
	h.seals(mlstest.Change{}, conversation.Commit{})
}

// seals ends the epoch with a commit by alice's device that makes a change. The parameter with
// tells the host of the change.
func (h *hosted) seals(change mlstest.Change, with conversation.Commit) {
	h.Helper()
	commit, next := h.group.SealedCommit(change)
	with.Caller, with.Key, with.Message = h.ID("us:/alice"), uuid.NewString(), commit
	if len(change.Add) > 0 {
		with.Welcomes = [][]byte{next.Welcome(change.Add...)}
	}
	if _, err := h.registry.Commit(h.TB.Context(), h.at, with); err != nil {
		h.Fatal(err)
	}
	h.group = next
}

// addsAnew ends the epoch with a commit that adds a device of a member.
func (h *hosted) addsAnew(name string) {
	h.Helper()
	d := mlstest.NewDevice(h.Long(name), h.Now())
	h.seals(mlstest.Change{Add: []*mlstest.Device{d}}, conversation.Commit{Declared: conversation.Declared{Added: [][]byte{d.Package}}})
}

// resets resets the conversation.
func (h *hosted) resets() {
	h.Helper()
	group, err := h.registry.AskReset(h.TB.Context(), h.at, h.ID("us:/alice"))
	if err != nil {
		h.Fatal(err)
	}
	next := mlstest.NewGroup(h.device)
	next.ID = group
	if _, err := h.registry.Reset(h.TB.Context(), h.at, h.ID("us:/alice"), next.Info(h.device)); err != nil {
		h.Fatal(err)
	}
}
