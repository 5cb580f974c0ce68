package cache

import (
	"context"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Layers of a cache. The name of a key begins with its layer.
const (
	Objects = "obj"   // documents of activities and objects
	Actors  = "actor" // cards of actors
)

// Sweep deletes the pages of these lists and the documents of these layers, for these users. If
// dryRun is true, it deletes nothing. It returns how many keys it found for each user. It leaves
// all other keys alone, because the same Redis may store streams and sessions.
func (c *Cache) Sweep(ctx context.Context, users []vocab.Username, lists, layers []string, dryRun bool) (map[vocab.Username]int, error) {
	named := make(map[string]vocab.Username, len(users))
	for _, u := range users {
		named[u.String()] = u
		if !dryRun {
			c.forget(u, lists)
		}
	}
	found := map[vocab.Username]int{}
	err := c.Store.Sweep(ctx, dryRun, func(user, name string) bool {
		u, isNamed := named[user]
		layer, rest, _ := strings.Cut(name, ":")
		list, _, _ := strings.Cut(rest, ":")
		if !isNamed || !slices.Contains(layers, layer) && (layer != feedLayer || !slices.Contains(lists, list)) {
			return false
		}
		found[u]++
		return true
	})
	return found, err
}
