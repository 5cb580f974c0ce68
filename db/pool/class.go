package pool

import (
	"context"
	"math"
	"runtime"
	"time"
)

// Class is the purpose for which a user's database is used. Each class has a share of the
// connections, so that no class can starve another.
type Class uint8

// The classes.
const (
	Work     Class = iota // activities of peers, deliveries, and upkeep
	Owner                 // requests of users' own clients
	Stranger              // reads by anonymous clients and by peers, and reads that can be left out
	classes
)

func (c Class) String() string { return [classes]string{"work", "owner", "stranger"}[c] }

// Strangers are functions that the queue calls for the class Stranger. Each gets the context of
// the call of Acquire.
type Strangers struct {
	// PayerOf returns the payer of the call. Payers are served by turns. The empty payer never
	// waits for its turn.
	PayerOf func(context.Context) string
	// MayOpen reports whether a connection may be opened for the call. It is called only when no
	// open connection is free, and with the lock of the pool held.
	MayOpen func(context.Context) bool
}

// keptFor returns how many connections are reserved for a class. The parameter limit is the
// number of all connections. With a limit of 64, eight are reserved for Owner and four for Work.
// With a limit below four, none are reserved.
func keptFor(class Class, limit int) int {
	switch class {
	case Owner:
		return (limit + 4) / 8
	case Work:
		return (limit + 12) / 16
	}
	return 0
}

// atWork limits how many connections the class Work may use. So many connections are useful
// because most of them wait for the disk at the same time. More connections would only compete
// for the processors.
const atWork = 64

// classShare returns how many connections a class may have in use at most. It does not subtract
// the connections that are reserved for the other classes (see keptFor). The parameter limit is
// the number of all connections.
func classShare(class Class, limit int) int {
	switch class {
	case Stranger:
		return max(1, limit/4)
	case Work:
		return min(limit, atWork)
	}
	return limit
}

// slowOpen is the time after which a connection that is being opened no longer keeps others from
// being opened. It is a few times what the work takes. Whatever takes longer waits for the network
// or for the server, and would hold up the others for nothing.
const slowOpen = 20 * time.Millisecond

// openings limits how many connections of a class may be in the first slowOpen of being opened. To
// open one is work for processors: of the machine of PostgreSQL, which often is this one, and of
// the engine. Without the limit, activities that name many users would have all of the class's
// connections opened at once, and everybody else would wait for that.
func openings(class Class) int {
	if class == Owner {
		return math.MaxInt
	}
	return max(2, runtime.GOMAXPROCS(0))
}

// perUser limits how many connections to one user's database may be in use. One is for its
// writer, one for its deliveries, and two are for reads. More would not help, because each
// connection is a PostgreSQL process on the same data. With fewer, one slow read could hold up
// the writer.
const perUser = 4

// databaseShare returns how many connections to one database a class may have in use. The
// parameter limit is the number of connections to all databases. Strangers may use half of a
// database's connections, so that the other half is left to its owner.
func databaseShare(class Class, limit int) int {
	n := max(1, min(perUser, limit/2))
	if class == Stranger {
		return max(1, n/2)
	}
	return n
}
