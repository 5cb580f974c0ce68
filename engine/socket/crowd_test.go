package socket_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// crowd is the programs of one user. They all have a socket at first. Of the even ones each second
// leaves during the first half of the events and reconnects at once. The others of the even ones
// reconnect when all events are committed.
type crowd struct {
	r       *rig
	user    vocab.Username
	clients []*client
	staying sync.WaitGroup // counts the programs that have not left yet and will stay away
	over    chan struct{}  // closed after all events are committed
}

// The programs of a crowd, and the events that they receive.
const (
	crowdEvents = 60
	crowdHalf   = crowdEvents / 2
)

// gather opens the sockets of a new user.
func (r *rig) gather(name string) *crowd {
	r.Helper()
	c := &crowd{r: r, user: dbtest.User(r.T, r.store, name), over: make(chan struct{})}
	for k := range ofUser {
		c.clients = append(c.clients, r.open(c.user, nil))
		if k%4 == 2 {
			c.staying.Add(1)
		}
	}
	return c
}

// listen receives all events with program k.
func (c *crowd) listen(k int) {
	program := c.clients[k]
	switch k % 4 {
	case 0:
		program.await(1 + k%crowdHalf)
		program.leave()
		program.reopen(c.user)
	case 2:
		program.await(1 + k%crowdHalf)
		program.leave()
		c.staying.Done()
		<-c.over
		program.reopen(c.user)
	}
	program.await(crowdEvents)
}

// write commits the events of the user. It commits the second half after the programs that stay
// away have left, so that these programs miss it.
func (c *crowd) write() {
	defer close(c.over)
	addAtOnce(c.r, c.user, crowdHalf)
	c.staying.Wait()
	addAtOnce(c.r, c.user, crowdHalf)
}

// reopen opens another socket, after the last event that the program received.
func (c *client) reopen(u vocab.Username) {
	c.r.Helper()
	s, err := c.r.hub.Open(socket.Request{User: u, Kind: socket.SSE, After: &c.ids[len(c.ids)-1]})
	if err != nil {
		c.r.Fatal(err)
	}
	c.Socket = s
	c.left.Store(false)
	c.next()
}

// TEN-17: a thousand sockets get each event of their user once and in order. Half of the programs
// leave meanwhile and reconnect at their last event, without gap, repeat or reset. Transactions
// commit at the same time, and some numbers have no event.
func TestEverySocketGetsEveryEventOnceInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	crowds := make([]*crowd, 10)
	for n := range crowds {
		crowds[n] = r.gather(fmt.Sprint("u", n))
	}
	var got, writing sync.WaitGroup
	for _, c := range crowds {
		for k := range c.clients {
			got.Go(func() { c.listen(k) })
		}
	}
	turns := make(chan *crowd)
	for range 4 {
		writing.Go(func() {
			for c := range turns {
				c.write()
			}
		})
	}
	for _, c := range crowds {
		turns <- c
	}
	close(turns)
	writing.Wait()
	got.Wait()
	for _, c := range crowds {
		want := r.numbers(c.user)
		for k, program := range c.clients {
			program.wantNumbers(want)
			program.settle()
			if slices.ContainsFunc(program.was, func(f socket.Frame) bool { return f.Type == "reset" }) {
				t.Errorf("program %d of %s was told to begin anew", k, c.user)
			}
		}
	}
}

// addAtOnce adds n events by three writers at the same time. The writers also use up numbers that
// belong to no event.
func addAtOnce(r *rig, u vocab.Username, n int) {
	sql := dbtest.SQL(r, r.store, u)
	var writers sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			for range n / 6 {
				r.add(u, 2)
				if _, err := sql.ExecContext(r.Context(), `SELECT nextval('event_outbox_seq_seq')`); err != nil {
					r.Error(err)
				}
			}
		})
	}
	writers.Wait()
}
