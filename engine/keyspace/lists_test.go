package keyspace_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/keyspace"
)

// Lists and texts behave alike on one server, on Sentinel and on a cluster: the test reads and
// sweeps them. A sweep keeps those that it does not choose.
func TestListsAndTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range servers {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := open(t, keyspace.Config{CacheURL: tt.url(t)})
			alice, bob := k.Cache.Of(user(t, "alice")), k.Cache.Of(user(t, "bob"))
			for _, space := range []keyspace.Space{alice, bob} {
				if err := space.ReplaceList(t.Context(), "list", []string{"head", "a", "b", "c"}, time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := space.SetTexts(t.Context(), []keyspace.Text{{Key: "obj:1", Value: "one", While: time.Hour}, {Key: "obj:2", Value: "two", While: time.Hour}}); err != nil {
					t.Fatal(err)
				}
			}
			g, err := alice.Glance(t.Context(), []string{"obj:2", "obj:3"}, "list", 2)
			if d := cmp.Diff(keyspace.Glance{Texts: []string{"two", ""}, Elements: []string{"head", "a", "b"}}, g); err != nil || d != "" {
				t.Errorf("Glance: %v (-want +got)\n%s", err, d)
			}
			texts, err := alice.Texts(t.Context(), []string{"obj:1", "obj:3", "obj:2"})
			if d := cmp.Diff([]string{"one", "", "two"}, texts); err != nil || d != "" {
				t.Errorf("Texts: %v (-want +got)\n%s", err, d)
			}
			for _, dryRun := range []bool{true, false} {
				found := map[string]int{}
				err = k.Cache.Sweep(t.Context(), dryRun, func(user, name string) bool {
					found[user+" "+name]++
					return user == "alice" && name != "list"
				})
				want := map[string]int{"alice list": 1, "alice obj:1": 1, "alice obj:2": 1, "bob list": 1, "bob obj:1": 1, "bob obj:2": 1}
				if d := cmp.Diff(want, found); err != nil || d != "" {
					t.Errorf("Sweep: %v (-want +got)\n%s", err, d)
				}
			}
			texts, err = alice.Texts(t.Context(), []string{"obj:1", "obj:2"})
			if d := cmp.Diff([]string{"", ""}, texts); err != nil || d != "" {
				t.Errorf("swept: %v (-want +got)\n%s", err, d)
			}
			states, err := k.Cache.TextsOf(t.Context(), []keyspace.UserKey{{User: user(t, "bob"), Name: "obj:1"}, {User: user(t, "alice"), Name: "obj:1"}, {User: user(t, "bob"), Name: "obj:2"}})
			if d := cmp.Diff([]string{"one", "", "two"}, states); err != nil || d != "" {
				t.Errorf("TextsOf: %v (-want +got)\n%s", err, d)
			}
			for _, text := range []string{"mine", "yours"} { // the first text of a missing key stays
				agreed, err := bob.AgreeTexts(t.Context(), []keyspace.Text{{Key: "obj:3", Value: text, While: time.Hour, IfMissing: true}, {Key: "obj:2", Value: text, While: time.Hour}})
				if d := cmp.Diff([]string{"mine", text}, agreed); err != nil || d != "" {
					t.Errorf("AgreeTexts: %v (-want +got)\n%s", err, d)
				}
			}
			if n, err := bob.Delete(t.Context(), "list", "obj:1", "obj:2", "obj:3"); n != 4 || err != nil {
				t.Errorf("Delete found %d of bob's 4 keys, %v", n, err)
			}
			if _, err := bob.Enlist(t.Context(), "list", "obj:3", 9); err != nil {
				t.Fatal(err)
			}
			if err := bob.SetTexts(t.Context(), []keyspace.Text{{Key: "obj:1", Value: "one", While: time.Hour}}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"obj:2", "obj:1"} {
				if _, err := bob.Enlist(t.Context(), "list", name, 9); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // until an element above the bound is removed, each call returns it
				beyond, err := bob.Enlist(t.Context(), "list", "obj:4", 3)
				if err != nil || len(beyond) == 0 || beyond[len(beyond)-1] != "obj:3" {
					t.Errorf("beyond the bound are %v, %v, want obj:3 at the end", beyond, err)
				}
			}
			if _, err := bob.Delist(t.Context(), []string{"list"}, "obj:4"); err != nil {
				t.Fatal(err)
			}
			if n, err := bob.Delist(t.Context(), []string{"list", "other"}, "obj:1", "obj:2"); n != 1 || err != nil {
				t.Errorf("Delist found %d of bob's keys, %v, want 1", n, err)
			}
			g, err = bob.Glance(t.Context(), []string{"obj:1"}, "list", -1)
			if d := cmp.Diff(keyspace.Glance{Texts: []string{""}, Elements: []string{"obj:3"}}, g); err != nil || d != "" {
				t.Errorf("delisted: %v (-want +got)\n%s", err, d)
			}
			if g, err := alice.Glance(t.Context(), nil, "list", -1); err != nil || len(g.Elements) != 4 {
				t.Errorf("the list that was not chosen has %d elements, %v, want 4", len(g.Elements), err)
			}
		})
	}
}
