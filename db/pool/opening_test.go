package pool

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
)

// A hundred databases are asked for at once, and the server takes 10 ms to open a connection.
func TestFewConnectionsAreOpenedAtOnceAndOpenOnesAreUsedBesideThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, most, asked := opensIn(t, 10*time.Millisecond)
		if *most != openings(Work) {
			t.Errorf("up to %d connections were opened at once, want %d", *most, openings(Work))
		}
		if !now(c, Work, "alice") {
			t.Error("an open connection could not be used while others were being opened")
		}
		if !now(c, Owner, "bob") {
			t.Error("bob's client had to wait for the connections that activities open")
		}
		asked.Wait()
		c.Close()
	})
}

// The databases' server has stopped answering: it takes a minute to open a connection.
func TestAServerThatDoesNotAnswerKeepsNoOtherFromOpening(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, asked := opensIn(t, time.Minute)
		time.Sleep(atWork * slowOpen) // on the fake clock of synctest
		c.mu.Lock()
		waiting := c.waiters[Work].Len()
		c.mu.Unlock()
		if waiting != 100-atWork {
			t.Errorf("%d calls wait for their turn, want those beyond the share alone, %d", waiting, 100-atWork)
		}
		asked.Wait()
		c.Close()
	})
}

// opensIn returns a pool with an idle connection to alice's database whose server takes the given
// time to open another one, the most connections of the class Work that it was opening at once, and
// a hundred calls of Acquire, of which each waits for a database of its own.
func opensIn(t *testing.T, takes time.Duration) (c *Pool, most *int, asked *sync.WaitGroup) {
	c, s := managed(1000)
	c.Release(mustAcquire(t, c, "alice"))
	var mu sync.Mutex
	opening := 0
	most, asked = new(int), new(sync.WaitGroup)
	c.connect = func(ctx context.Context, database string) (*pgx.Conn, error) {
		if database == "bob" {
			return s.connect(ctx, database)
		}
		mu.Lock()
		opening++
		*most = max(*most, opening)
		mu.Unlock()
		time.Sleep(takes) // on the fake clock of synctest
		mu.Lock()
		opening--
		mu.Unlock()
		return s.connect(ctx, database)
	}
	for n := range 100 {
		asked.Go(func() {
			l, err := c.Acquire(t.Context(), Work, fmt.Sprint(n), nil)
			if err != nil {
				t.Error(err)
				return
			}
			c.Release(l)
		})
	}
	synctest.Wait()
	return c, most, asked
}
