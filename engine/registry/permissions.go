package registry

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Permissions holds the rules for what a user permits to actors. The comment of each rule says
// what is permitted to the actors that meet it. Actors of other servers are told only of typing
// and reading in encrypted conversations.
type Permissions struct {
	InsecureDM      Rule `json:"insecure_dm"`       // their private messages do not count as a stranger's
	SeePresence     Rule `json:"see_presence"`      // they see that the user is online or typing
	SeeReadReceipts Rule `json:"see_read_receipts"` // they see what the user has read
	EncryptedChat   Rule `json:"encrypted_chat"`    // conversations of two may be encrypted
}

// Rule names relationships. An actor needs all relationships in All and, unless Any is empty, at
// least one in Any. A rule without relationships is met by nobody.
type Rule struct {
	Any []string `json:"any,omitempty"`
	All []string `json:"all,omitempty"`
}

// ties lists the relationships that a rule may name: the user follows the actor, the actor
// follows the user, and the types of friendship.
var ties = []string{"following", "follower", vocab.FriendOf, vocab.CloseFriendOf}

// DefaultPermissions returns the rules for a user whose file has no rules.
func DefaultPermissions() Permissions {
	return Permissions{
		InsecureDM:      Rule{Any: []string{"following", vocab.FriendOf, vocab.CloseFriendOf}},
		SeePresence:     Rule{All: []string{"following", "follower"}},
		SeeReadReceipts: Rule{All: []string{"following", "follower"}},
		EncryptedChat:   Rule{Any: []string{vocab.FriendOf, vocab.CloseFriendOf}},
	}
}

// closedPermissions returns the rules for a user whose file cannot be used. Nobody may see
// anything, and no conversation is encrypted, because the file may forbid both. The default rule
// for private messages still holds, because the feed of requests has room for only a few messages.
func closedPermissions() Permissions {
	p := DefaultPermissions()
	p.SeePresence, p.SeeReadReceipts, p.EncryptedChat = Rule{}, Rule{}, Rule{}
	return p
}

// UnmarshalJSON replaces the whole rule, so lists that the JSON leaves out become empty.
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
