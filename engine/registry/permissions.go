package registry

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Permissions are the rules by which a user permits something to actors.
type Permissions struct {
	InsecureDM      Rule `json:"insecure_dm"`       // their private messages are none of a stranger
	SeePresence     Rule `json:"see_presence"`      // they are told that the user is there, and types
	SeeReadReceipts Rule `json:"see_read_receipts"` // they are told what the user has read
	EncryptedChat   Rule `json:"encrypted_chat"`    // conversations with them become encrypted
}

// Rule names relationships of which an actor needs any, or all. One that names none is met by
// nobody.
type Rule struct {
	Any []string `json:"any,omitempty"`
	All []string `json:"all,omitempty"`
}

// ties are the relationships that rules name: by the user's own follow, by that of the actor, and
// the types of friendship.
var ties = []string{"following", "follower", vocab.FriendOf, vocab.CloseFriendOf}

// DefaultPermissions returns the rules of a user whose file has none.
func DefaultPermissions() Permissions {
	return Permissions{
		InsecureDM:      Rule{Any: []string{"following", vocab.FriendOf, vocab.CloseFriendOf}},
		SeePresence:     Rule{All: []string{"following", "follower"}},
		SeeReadReceipts: Rule{All: []string{"following", "follower"}},
		EncryptedChat:   Rule{Any: []string{vocab.FriendOf, vocab.CloseFriendOf}},
	}
}

// closedPermissions returns the rules that hold while a user's file cannot be used: it might have
// said that nobody may see anything. Messages of people that the user follows still come as usual:
// there is room for few among the requests.
func closedPermissions() Permissions {
	p := DefaultPermissions()
	p.SeePresence, p.SeeReadReceipts, p.EncryptedChat = Rule{}, Rule{}, Rule{}
	return p
}

// UnmarshalJSON reads a rule in place of the one that is there, and not into it.
func (r *Rule) UnmarshalJSON(data []byte) error {
	type plain Rule
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*r = Rule(read)
	return nil
}

func (p Permissions) validateRules() error {
	for _, named := range []struct {
		key  string
		rule Rule
	}{{"permissions.insecure_dm", p.InsecureDM}, {"permissions.see_presence", p.SeePresence}, {"permissions.see_read_receipts", p.SeeReadReceipts},
		{"permissions.encrypted_chat", p.EncryptedChat}} {
		if err := named.rule.validateRule(named.key); err != nil {
			return err
		}
	}
	return nil
}

func (r Rule) validateRule(key string) error {
	if len(r.Any) > 0 && len(r.All) > 0 {
		return badMember(key, " has any and all: a rule has one of them")
	}
	for _, name := range slices.Concat(r.Any, r.All) {
		if !slices.Contains(ties, name) {
			last := len(ties) - 1
			return badMember(key, ": %.60q is none of %s and %s", name, strings.Join(ties[:last], ", "), ties[last])
		}
	}
	if len(r.Any)+len(r.All) > len(ties) {
		return badMember(key, " names %d relationships: there are %d", len(r.Any)+len(r.All), len(ties))
	}
	return nil
}
