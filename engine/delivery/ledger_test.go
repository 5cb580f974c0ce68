package delivery

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func (l *ledger) batch(now time.Time, due *time.Time) batch {
	return l.takeBatch(now, func(vocab.Username) *time.Time { return due }, func(name string) instance.Host { return instance.Host{Host: name, Failures: 1} })
}

func TestAMarkIsWrittenWhenItMatters(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	in := func(d time.Duration) *time.Time { at := now.Add(d); return &at }
	for _, tt := range []struct {
		name         string
		marked, mark *time.Time
		want         bool
	}{
		{"nothing is owed, as before", nil, nil, false},
		{"something is owed", nil, in(time.Hour), true},
		{"nothing is owed any more", in(time.Hour), nil, true},
		{"as before", in(time.Hour), in(time.Hour), false},
		{"earlier than marked", in(time.Hour), in(time.Minute), true},
		{"later than marked, which is far", in(time.Minute), in(time.Hour), false},
		{"later than marked, which is near", in(time.Second), in(time.Hour), true},
		{"as marked within soon", in(soon), in(soon + time.Second), true},
		{"both near", in(time.Second), in(2 * time.Second), false},
	} {
		l := newLedger()
		l.setMark(alice, tt.marked)
		l.noteUser(alice)
		b := l.batch(now, tt.mark)
		if got := len(b.due) == 1; got != tt.want {
			t.Errorf("%s: written: %t, want %t", tt.name, got, tt.want)
		}
		if len(b.due) == 1 && (b.due[0].Was != tt.marked || b.due[0].At != tt.mark) {
			t.Errorf("%s: written %+v, want that it was %v and is %v", tt.name, b.due[0], tt.marked, tt.mark)
		}
	}
}

func TestABatchHoldsEachChangeOnce(t *testing.T) {
	t.Parallel()
	l, now := newLedger(), time.Unix(1e9, 0)
	due := now.Add(time.Hour)
	for range 2 {
		l.noteHost("a.example")
		l.noteUser(alice)
		l.noteParked("a.example", alice, true)
		l.noteParked("b.example", alice, true)
		l.noteParked("b.example", alice, false)
	}
	select {
	case <-l.news:
	default:
		t.Error("nobody was told that there is news")
	}
	b := l.batch(now, &due)
	if len(b.hosts) != 1 || b.hosts[0].Failures != 1 || len(b.due) != 1 || len(b.parked) != 1 || b.parked[0].Host != "a.example" || len(b.resumed) != 1 || b.resumed[0].Host != "b.example" {
		t.Errorf("the batch is %+v, want one host, one user, a.example parked and b.example resumed", b)
	}
	if b = l.batch(now, &due); len(b.hosts)+len(b.due)+len(b.parked)+len(b.resumed) != 0 {
		t.Errorf("the next batch is %+v, want nothing", b)
	}
}

func TestABatchThatFailedIsInTheNext(t *testing.T) {
	t.Parallel()
	l, now := newLedger(), time.Unix(1e9, 0)
	due := now.Add(time.Hour)
	l.noteHost("a.example")
	l.noteUser(alice)
	l.noteParked("a.example", alice, true)
	l.noteParked("b.example", alice, false)
	l.noteParked("c.example", alice, true)
	b := l.batch(now, &due)
	l.noteParked("a.example", alice, false) // its deliveries are resumed before the batch comes back
	l.returnBatch(b)
	b = l.batch(now, &due)
	if len(b.hosts) != 1 || len(b.due) != 1 || len(b.parked) != 1 || b.parked[0].Host != "c.example" || len(b.resumed) != 2 {
		t.Errorf("the next batch is %+v, want all again, but a.example as it is since", b)
	}
}

func TestOutcomesThatCouldNotBeWrittenComeFirst(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.addEntry(alice, entry{delivery: user.Delivery{ID: 1}})
	taken := l.takeEntries(alice)
	l.addEntry(alice, entry{delivery: user.Delivery{ID: 2, Host: "a.example"}, outcome: user.Outcome{Status: user.DeliveryParked}})
	l.returnEntries(alice, taken)
	if !l.isParking(alice, "a.example") || l.isParking(alice, "b.example") {
		t.Error("the ledger does not know what the next turn parks")
	}
	if all := l.takeEntries(alice); len(all) != 2 || all[0].delivery.ID != 1 || len(l.takeEntries(alice)) != 0 {
		t.Errorf("entries %+v, want both once, the first one first", all)
	}
}
