package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findBio finds where the handles of a summary lead, as those of a note are found, but tells
// nobody. Of handles that are known nobody is asked.
func (f *finder) findBio(ctx context.Context, x *exchange, summary string, known *registry.Profile) (all []registry.Mention, err error) {
	handles := listHandles(summary)
	handles = handles[:min(len(handles), registry.MaxMentions)]
	isKnown := func(handle string) bool { return known.PageOf(handle) != "" }
	found, err := f.findHandles(ctx, x, slices.DeleteFunc(slices.Clone(handles), isKnown))
	if err != nil {
		return nil, err
	}
	if found, err = f.withoutBlocked(ctx, x, found); err != nil {
		return nil, err
	}
	for _, h := range handles {
		page := known.PageOf(h)
		if a := found[h]; a != nil {
			page = a.Page()
		}
		if page != "" {
			all = append(all, registry.Mention{Handle: h, URL: vocab.ID(page)})
		}
	}
	isFound := func(handle string) bool {
		return slices.ContainsFunc(all, func(m registry.Mention) bool { return m.Handle == handle })
	}
	x.unresolved = slices.DeleteFunc(listHandles(summary), isFound)
	return all, nil
}

// linkBio looks up the handles of a summary that was written by hand, and keeps where they lead.
func (f *finder) linkBio(ctx context.Context, x *exchange) error {
	now := f.profiles.User(x.User).Profile
	found, err := f.findBio(ctx, x, now.Summary, &now)
	if err != nil || slices.Equal(found, now.Mentions) {
		return err
	}
	err = f.profiles.UpdateUser(x.User, func(c *registry.User) error {
		if c.Profile.Summary == now.Summary { // else who changed it looks its own handles up
			c.Profile.Mentions = found
		}
		return nil
	})
	return explainUnwritten(err)
}
