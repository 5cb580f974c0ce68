package conversation

import (
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Storage counts the bytes of the requests by which members of other servers add to the logs of
// users of this server. All that they add is stored, and is sent to every other member. Messages
// that come through the host's inbox are not counted.
type Storage struct{ logs *policy.Limiter }

func newStorage(now func() time.Time) *Storage { return &Storage{policy.HostedLogs.Limiter(now)} }

// Check refuses a member if the members of its domain have added as many bytes to the host's logs
// as one domain may add in a day.
func (s *Storage) Check(host vocab.Username, member vocab.ID) error {
	if ok, after := s.logs.Ready(storageKey(host, member)); !ok {
		return fault.New(fault.RateLimited, "members of that domain have sent as much as the host keeps in a day").After(after)
	}
	return nil
}

// Count counts the n bytes of a request by which a member has added to the host's logs.
func (s *Storage) Count(host vocab.Username, member vocab.ID, n int) {
	s.logs.Spend(storageKey(host, member), n)
}

func storageKey(host vocab.Username, member vocab.ID) string {
	return host.String() + " " + policy.RegistrableDomain(member.Host())
}
