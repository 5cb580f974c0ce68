package db

import "context"

// Class says what a user's database is used for. Each class has a share of the connections, so that none can starve
// another.
type Class uint8

// The classes.
const (
	Work     Class = iota // what peers send, what is owed to them, and upkeep
	Owner                 // what users ask for through their programs
	Stranger              // what is read by those who are nobody here
	classes
)

func (c Class) String() string { return [classes]string{"work", "owner", "stranger"}[c] }

// As returns c for the use of a class; a Cluster that Open returned is for Work. Closing either closes both.
func (c *Cluster) As(class Class) *Cluster {
	view := *c
	view.class = class
	return &view
}

// ForStrangers returns c for those who are nobody here. mayOpen says whether the work of a context
// may open a connection, which costs fifteen times a write; to use an open one it is not asked.
func (c *Cluster) ForStrangers(mayOpen func(context.Context) bool) *Cluster {
	view := c.As(Stranger)
	view.mayOpen = mayOpen
	return view
}

// kept returns how many of limit connections no other class may take: of 64 eight for owners and four for work. Below
// four there is nothing to divide.
func kept(class Class, limit int) int {
	switch class {
	case Owner:
		return (limit + 4) / 8
	case Work:
		return (limit + 12) / 16
	}
	return 0
}

// atWork is how many connections are worked over for peers at once, when there are more: enough to share the waits for the
// disk, and few enough not to take the processors from each other.
const atWork = 64

// most returns how many of limit connections a class may have in use, when nobody else wants any.
func most(class Class, limit int) int {
	switch class {
	case Stranger:
		return max(1, limit/4)
	case Work:
		return min(limit, atWork)
	}
	return limit
}

// perUser is how many connections to one user's database may be in use: its writer's, its deliveries', and two for reads.
// More would help nobody, since each is a process of PostgreSQL's on the same data; fewer would let one slow read hold up
// the writer.
const perUser = 4

// mostOf returns how many of limit connections a class may have in use to one database. Strangers leave half of them to
// its owner.
func mostOf(class Class, limit int) int {
	n := max(1, min(perUser, limit/2))
	if class == Stranger {
		return max(1, n/2)
	}
	return n
}
