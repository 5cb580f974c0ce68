package conversation_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// Each report causes one event for the host and changes nothing. So a member cannot reset the
// conversation by reports. Reports by strangers are refused, and so are reports with unknown
// reasons.
func TestAReportTellsTheHostAndResetsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	before := s.view()
	for _, reason := range conversation.Reasons {
		if err := s.registry.Report(t.Context(), &s.at, bobID, conversation.Report{Reason: reason, Epoch: 7}); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if n := s.events()["mls.recovery.reported"]; n != len(conversation.Reasons) {
		t.Errorf("the host was told %d times", n)
	}
	after := s.view()
	if after.Status != before.Status || after.Epoch != before.Epoch || after.LastSeq != before.LastSeq || after.Generation != before.Generation {
		t.Errorf("the conversation was %+v, and is %+v", before, after)
	}
	report := conversation.Report{Reason: "lost_state"}
	s.wantRefused("a stranger's report", s.registry.Report(t.Context(), &s.at, carolID, report), fault.NotFound, "no_conversation")
	s.wantRefused("a reason that there is not", s.registry.Report(t.Context(), &s.at, bobID, conversation.Report{Reason: "bored"}), fault.Unprocessable, "invalid_parameter")
	s.wantRefused("an epoch that there is not", s.registry.Report(t.Context(), &s.at, bobID, conversation.Report{Reason: "lost_state", Epoch: -1}), fault.Unprocessable, "invalid_parameter")
	if err := s.registry.Report(t.Context(), nil, bobID, report); err != nil {
		t.Errorf("a conversation that another server puts in order: %v", err)
	}
	if n := s.events()["mls.recovery.reported"]; n != len(conversation.Reasons) {
		t.Errorf("the host was told %d times", n)
	}
}
