package pool

// Class is the purpose for which a user's database is used. Each class has a share of the
// connections, so that none can starve another.
type Class uint8

// The classes.
const (
	Work     Class = iota // activities of peers, deliveries, and upkeep
	Owner                 // requests of users' own programs
	Stranger              // reads by anonymous clients and by peers
	classes
)

func (c Class) String() string { return [classes]string{"work", "owner", "stranger"}[c] }

// keptFor returns how many of limit connections no other class may take: of 64 eight for owners
// and four for work. Below four there is nothing to divide.
func keptFor(class Class, limit int) int {
	switch class {
	case Owner:
		return (limit + 4) / 8
	case Work:
		return (limit + 12) / 16
	}
	return 0
}

// atWork is how many connections are worked over for peers at once, when there are more: enough to
// share the waits for the disk, and few enough not to take the processors from each other.
const atWork = 64

// classShare returns how many of limit connections a class may have in use, when nobody else wants
// any.
func classShare(class Class, limit int) int {
	switch class {
	case Stranger:
		return max(1, limit/4)
	case Work:
		return min(limit, atWork)
	}
	return limit
}

// perUser is how many connections to one user's database may be in use: its writer's, its
// deliveries', and two for reads. More would help nobody, since each is a process of PostgreSQL's
// on the same data; fewer would let one slow read hold up the writer.
const perUser = 4

// databaseShare returns how many of limit connections a class may have in use to one database.
// Strangers leave half of them to its owner.
func databaseShare(class Class, limit int) int {
	n := max(1, min(perUser, limit/2))
	if class == Stranger {
		return max(1, n/2)
	}
	return n
}
