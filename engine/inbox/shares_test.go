package inbox

import (
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// PAY-02: the large bodies of two clients do not use up the memory for requests. A third client
// finds room.
func TestMemoryHasSharesByClient(t *testing.T) {
	t.Parallel()
	m := &memory{room: policy.Memory.NewPool(), bodyLimit: 1 << 20}
	request := func(payer string) *receiving {
		x := &receiving{payer: payer}
		x.Body = make([]byte, 1<<20)
		return x
	}
	var held []*receiving
	for n := range 32 {
		x := request([]string{"address 192.0.2.1/32", "address 192.0.2.2/32"}[n%2])
		if m.takeRoom(x) == nil {
			held = append(held, x)
		}
	}
	known := request("address 192.0.2.3/32")
	if err := m.takeRoom(known); err != nil {
		t.Errorf("with %d requests under way a third client is refused: %v", len(held), err)
	}
	m.giveRoom(known)
	for _, x := range held {
		m.giveRoom(x)
	}
	if n := m.room.Used(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

// The large messages of one domain use at most three quarters of the memory. They leave room for
// large and small messages of other domains.
func TestLargeMessagesShareTheMemory(t *testing.T) {
	t.Parallel()
	m := &memory{room: policy.Memory.NewPool(), bodyLimit: 1 << 20}
	take := func(payer string, large int64) (held []*receiving) {
		for range 20 {
			x := &receiving{payer: payer, large: large}
			if m.takeRoom(x) == nil {
				held = append(held, x)
			}
		}
		return held
	}
	one := take("one.example", 16<<20)
	if n := m.room.Used(); len(one) < 2 || n > policy.Memory.Pool*3/4 {
		t.Errorf("%d messages of one domain hold %d bytes", len(one), n)
	}
	other, small := take("other.example", 16<<20), take("address 192.0.2.1/32", 0)
	if len(other) == 0 || len(small) != 20 {
		t.Errorf("beside them there is room for %d messages of another domain, and %d of 20 small requests", len(other), len(small))
	}
	for _, x := range append(append(one, other...), small...) {
		m.giveRoom(x)
	}
	if n := m.room.Used(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

// PAY-07: a budget limits the events that strangers of one domain cause for a user. Activities
// without effect here have a smaller share of the budget. Contacts of the same domain are not
// charged.
func TestEventsOfStrangersHaveABudget(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := &applier{Deps: Deps{Handlers: handler.New(nil, nil)}, bounds: newBounds(func() time.Time { return now })}
	from := func(host, kind string) *applying {
		return &applying{Received: handler.Received{Activity: &vocab.Activity{Type: kind},
			Actor: &vocab.Actor{ID: vocab.ID("https://" + host + "/users/carol")}}}
	}
	told := func(host, kind string) (n int) {
		for n < 5000 && i.mayTell(from(host, kind), user.TrustStranger) {
			n++
		}
		return n
	}
	idle, likes := told("evil.example", "Listen"), told("evil.example", "Like")
	if idle == 0 || likes <= idle || likes == 5000 {
		t.Errorf("strangers are heard %d times by what does nothing, %d times by likes", idle, likes)
	}
	if !i.mayTell(from("evil.example", "Like"), user.TrustContact) {
		t.Error("a contact pays for what strangers of its domain did")
	}
	if !i.mayTell(from("good.example", "Like"), user.TrustStranger) {
		t.Error("another domain pays for it")
	}
}

// The recipients who are counted, because they follow neither the actor nor the one that passes its
// activity on, did not ask for the activity.
func TestRecipientsWhoAreCountedDidNotAskForTheActivity(t *testing.T) {
	t.Parallel()
	b := &budgets{Deps: Deps{Local: actor.NewLocal("https://us.example", nil, nil, "")}, bounds: newBounds(time.Now)}
	const carol, group = "https://peer.example/carol", "https://group.example/1"
	x := &receiving{signer: &vocab.Actor{ID: group}, passer: &vocab.Actor{ID: group}, followers: map[vocab.ID]map[vocab.Username]bool{
		carol: setOf(usernames(t, "alice")), group: setOf(usernames(t, "bob"))}}
	x.Activity, x.Actor, x.Recipients = &vocab.Activity{}, &vocab.Actor{ID: carol}, usernames(t, "alice", "bob", "dave", "erin")
	if err := b.chargeFanOut(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if want := setOf(usernames(t, "dave", "erin")); !maps.Equal(x.strangers, want) {
		t.Errorf("counted are %v, want %v", x.strangers, want)
	}
}

// A megabyte for each of many strangers uses up their domain's budget of recipients sooner than
// small activities do, and what exceeds the daily budget of storage is refused.
func TestALargeActivityForManyStrangersCostsWhatItsCopiesTake(t *testing.T) {
	t.Parallel()
	const carol, dave = "https://peer.example/carol", "https://peer.example/dave"
	send := func(b *budgets, n, bytes int, followers ...string) (*receiving, error) {
		x := &receiving{signer: &vocab.Actor{ID: carol}, followers: map[vocab.ID]map[vocab.Username]bool{carol: setOf(usernames(t, followers...))}}
		x.Actor, x.Activity = &vocab.Actor{ID: carol}, &vocab.Activity{ID: dave, Type: "Create", Raw: make([]byte, bytes)}
		for n := range n {
			x.Recipients = append(x.Recipients, usernames(t, fmt.Sprint("reader", n))...)
		}
		if err := b.chargeFanOut(t.Context(), x); err != nil {
			return x, err
		}
		return x, b.limitForStrangers(t.Context(), x)
	}
	for bytes, want := range map[int]int{4 << 10: 21, 1 << 20: 3} {
		now := time.Now()
		b := &budgets{Deps: Deps{Local: actor.NewLocal("https://us.example", nil, nil, "")}, bounds: newBounds(func() time.Time { return now })}
		taken := 0
		for range 100 {
			if _, err := send(b, 100, bytes); err == nil {
				taken++
			}
		}
		if taken != want {
			t.Errorf("%d activities of %d bytes for 100 strangers each are taken, want %d", taken, bytes, want)
		}
	}
	i := &Inbox{Deps: Deps{Local: actor.NewLocal("https://us.example", nil, nil, ""), Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		metrics: newMetrics(prometheus.NewRegistry())}
	b := &budgets{Deps: i.Deps, bounds: newBounds(time.Now), ignored: newIgnored(i)}
	if _, err := send(b, 300, 1<<20); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("a megabyte for each of 300 strangers: %v, want TooLarge", err)
	}
	b.bounds = newBounds(time.Now)
	if x, err := send(b, 300, 1<<20, "reader7"); err != nil || len(x.Recipients) != 1 {
		t.Errorf("with a follower among them it is for %d recipients, %v; want the follower alone", len(x.Recipients), err)
	}
}

func usernames(t *testing.T, names ...string) (users []vocab.Username) {
	t.Helper()
	for _, name := range names {
		u, err := vocab.ParseUsername(name)
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, u)
	}
	return users
}

// A flood of ignored activities uses bounded memory while their records are not yet written.
func TestWhatIsIgnoredTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	i := &Inbox{Deps: Deps{Local: actor.NewLocal("https://us.example", nil, nil, ""), Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		metrics: newMetrics(prometheus.NewRegistry())}
	g := newIgnored(i)
	for range mostUnwritten + 1 {
		g.add("https://evil.example/1", "Create", "https://evil.example/users/carol", IgnoredNobody)
	}
	if n := len(g.unwritten); n != mostUnwritten {
		t.Errorf("%d activities wait to be written, want %d", n, mostUnwritten)
	}
}

// PAY-05: a domain's budget bounds how many strangers its activities reach. Another domain is not
// charged.
func TestFanOutIsChargedToItsDomain(t *testing.T) {
	t.Parallel()
	b := newBounds(time.Now)
	posts := 0
	for posts < 100 {
		if ok, _ := b.fannedOut.Ready("evil.example"); !ok {
			break
		}
		b.fannedOut.Spend("evil.example", 999)
		posts++
	}
	if posts > 4 {
		t.Errorf("%d activities to 1,000 strangers each were let through at once", posts)
	}
	if ok, _ := b.fannedOut.Ready("good.example"); !ok {
		t.Error("another domain pays for it")
	}
}
