package inbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/registry"
)

// PAY-04: one member of a group without a host names more actors than a group may have, of one
// domain and then of many. A member who comes later and sends takes the place of one who has never
// sent, once a member names it, and of the domain with the most members.
func TestNamesAloneFillNoGroup(t *testing.T) {
	h := newHosted(t)
	strangers(t, h.Scene, registry.AllowStrangers)
	for _, name := range []string{"q:/mallory", "p:/carol"} {
		h.Actor(name)
	}
	me := h.Long("us:/alice")
	h.grow()
	h.sends(mine, "Welcome", h.group.Welcome(h.device))
	h.sends(mine, "PrivateMessage", h.group.Message(), "activity.to", []any{me, h.Long("q:/mallory")})
	ofOne, ofMany := []any{me}, []any{me, "https://a.example/silent"}
	for n := range mls.MaxMembers {
		ofOne, ofMany = append(ofOne, h.Long(fmt.Sprintf("q:/nobody%d", n))), append(ofMany, fmt.Sprintf("https://nobody%d.example/x", n))
	}
	h.as("q:/mallory").sends(mine, "PrivateMessage", h.group.Message(), "activity.to", ofOne)
	h.want("the members of one domain", `SELECT count(*)::text FROM conversation_members WHERE actor_uri LIKE '`+h.Long("q:/")+`%'`, fmt.Sprint(mls.MaxMembers/2))
	h.as("q:/mallory").sends(mine, "PrivateMessage", h.group.Message(), "activity.to", ofMany)
	h.want("the roster", `SELECT count(*)::text FROM conversation_members`, fmt.Sprint(mls.MaxMembers))
	h.as("p:/carol").sends(mine, "PrivateMessage", h.group.Message())
	const isIn = `SELECT regexp_replace(actor_uri, '.*/', '') FROM conversation_members WHERE actor_uri NOT LIKE '%nobody%' ORDER BY 1`
	h.want("the members before anybody names carol", isIn, slices.Sorted(slices.Values([]string{"dave", "mallory", "silent", h.Alice.String()}))...)
	h.sends(mine, "PrivateMessage", h.group.Message(), "activity.to", []any{me, h.Long("p:/carol"), h.Long("q:/eve")})
	h.want("the members", isIn, slices.Sorted(slices.Values([]string{"carol", "dave", "mallory", "silent", h.Alice.String()}))...)
	h.want("the roster once carol is in", `SELECT count(*)::text FROM conversation_members`, fmt.Sprint(mls.MaxMembers))
	h.as("p:/carol").sends(mine, "PrivateMessage", h.group.PrivateCommit())
	h.want("carol's commit counts", `SELECT epoch::text FROM mls_joined`, fmt.Sprint(h.group.Epoch+1))
}
