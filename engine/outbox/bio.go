package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findBio finds the actors that the handles in a summary name, as for a note, but does not address
// them. For a handle whose page the profile (known) has already, it sends no request.
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

// linkBio looks up the handles in the summary of the user's profile, and stores the pages of
// their actors in the profile. The user may have edited the summary in the configuration file,
// and no handle is looked up at that time.
func (f *finder) linkBio(ctx context.Context, x *exchange) error {
	now := f.profiles.User(x.User).Profile
	found, err := f.findBio(ctx, x, now.Summary, &now)
	if err != nil || slices.Equal(found, now.Mentions) {
		return err
	}
	err = f.profiles.UpdateUser(x.User, func(c *registry.User) error {
		if c.Profile.Summary == now.Summary { // otherwise the dispatch that changed it looks up its handles
			c.Profile.Mentions = found
		}
		return nil
	})
	return explainUnwritten(err)
}
