package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findBio finds the actors that a summary names by their handles, as findMentions does for a
// note, but it does not address them. It sends no request for a handle whose page is already in
// the profile (known).
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
// their actors in the profile. This is necessary because the user may have edited the summary in
// the configuration file, and an edit of the file looks up no handles.
func (f *finder) linkBio(ctx context.Context, x *exchange) error {
	now := f.profiles.User(x.User).Profile
	found, err := f.findBio(ctx, x, now.Summary, &now)
	if err != nil || slices.Equal(found, now.Mentions) {
		return err
	}
	err = f.profiles.UpdateUser(x.User, func(c *registry.User) error {
		if c.Profile.Summary == now.Summary { // otherwise the dispatch that changed the summary looks up its handles
			c.Profile.Mentions = found
		}
		return nil
	})
	return explainUnwritten(err)
}
