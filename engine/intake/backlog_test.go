package intake

import (
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The journal is read at one moment of a recount. Activities that are written before that moment,
// after it or not at all are counted as if there had been no recount.
func TestARecountMissesNoActivityThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	b := newBacklogs()
	begin := func() *instance.Intake {
		in := &instance.Intake{Payer: "peer.example", Raw: make([]byte, 100)}
		b.Of(vocab.Username{}).take(in.Payer, bytesOf(in))
		b.expect(in, []vocab.Username{{}})
		return in
	}
	want := func(when string, activities int64) {
		t.Helper()
		if of := b.Of(vocab.Username{}); of.Activities.Used() != activities || of.Bytes.Used() != activities*100 {
			t.Errorf("%s %d activities with %d bytes are counted, want %d", when, of.Activities.Used(), of.Bytes.Used(), activities)
		}
	}
	recount := func(journal int64, meanwhile func()) {
		if err := b.recount(func() ([]instance.Backlog, error) {
			meanwhile()
			return []instance.Backlog{{Payer: "peer.example", Activities: journal, Bytes: journal * 100}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	written, slow, failed := begin(), begin(), begin()
	var young *instance.Intake
	recount(0, func() {
		b.settle(written)
		b.giveBack(failed)
		young = begin()
	})
	want("after a recount that saw none", 3)
	b.settle(slow)
	b.giveBack(young)
	want("when all are written or have failed", 2)
	recount(2, func() {})
	want("after a recount that saw both", 2)
}
