package inbox

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// PAY-02: senders whose keys stall hold no memory but their bodies' while they wait, and leave room when they do not.
func TestMemoryHasSharesByClient(t *testing.T) {
	t.Parallel()
	i := &Inbox{room: policy.Memory.NewPool()}
	request := func(payer string) *receiving {
		x := &receiving{payer: payer}
		x.Body = make([]byte, 1<<20)
		return x
	}
	var held []*receiving
	for n := range 32 {
		x := request([]string{"address 192.0.2.1/32", "address 192.0.2.2/32"}[n%2])
		if i.takeRoom(x) == nil {
			held = append(held, x)
		}
	}
	known := request("address 192.0.2.3/32")
	if err := i.takeRoom(known); err != nil {
		t.Errorf("with %d requests under way a third client is refused: %v", len(held), err)
	}
	i.giveRoom(known)
	for _, x := range held {
		i.giveRoom(x)
	}
	if n := i.room.Used(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

// PAY-05: what a domain has fanned out to strangers is bounded, and another domain's is not touched.
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
