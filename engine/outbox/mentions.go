package outbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of the look-ups for one text. Handles beyond them stay plain text.
const (
	maxHandles  = 20
	handlesTime = 5 * time.Second
	handlesOnce = 5 // look-ups that run at the same time
)

// mentions maps handles in a text, in lower case, to the actors that they name.
type mentions map[string]*vocab.Actor

// findMentions finds the actors that a text names by their handles, and addresses them, so that
// they get the activity. A handle of no actor, or of an actor that the user blocks, stays plain
// text.
func (f *finder) findMentions(ctx context.Context, x *exchange, text string) error {
	handles := listHandles(text)
	found, err := f.findHandles(ctx, x, handles[:min(len(handles), maxHandles)])
	if err != nil {
		return err
	}
	if found, err = f.withoutBlocked(ctx, x, found); err != nil {
		return err
	}
	x.noteMentions(handles, found)
	for _, h := range handles {
		if a := found[h]; a != nil {
			x.addNamed(a)
		}
	}
	return nil
}

// linkNamed links only the handles of the activity's sender and named recipients. Other handles
// stay plain text. Otherwise a private text would go to further actors only because it mentions
// them. No request is sent to the servers of those actors.
func (x *exchange) linkNamed(text string) {
	found := mentions{}
	for _, a := range append(slices.Clone(x.named), x.actor) {
		if a.PreferredUsername != "" {
			found[strings.ToLower(handleOf(a))] = a
		}
	}
	x.noteMentions(listHandles(text), found)
}

// noteMentions records the actors that were found, and the handles for which none was found.
func (x *exchange) noteMentions(handles []string, found mentions) {
	x.mentions = found
	for _, h := range handles {
		if found[h] == nil {
			x.unresolved = append(x.unresolved, h)
		}
	}
}

// listHandles returns the handles in a text, in lower case, each once.
func listHandles(text string) (handles []string) {
	seen := map[string]bool{}
	for _, s := range vocab.Spans(text) {
		if h := strings.ToLower(s.Text); s.Kind == vocab.HandleSpan && !seen[h] {
			seen[h] = true
			handles = append(handles, h)
		}
	}
	return handles
}

// findHandles finds the actors of handles. It omits handles for which no actor was found within
// handlesTime.
func (f *finder) findHandles(ctx context.Context, x *exchange, handles []string) (mentions, error) {
	limited, cancel := context.WithTimeout(ctx, handlesTime)
	defer cancel()
	actors := make([]*vocab.Actor, len(handles))
	var g errgroup.Group
	g.SetLimit(handlesOnce)
	for n, h := range handles {
		g.Go(func() error {
			a, err := f.actorsFor(x).Handle(limited, h)
			if err == nil {
				err = f.checkActive(limited, a.ID)
			}
			if err != nil {
				f.log.DebugContext(ctx, "handle in a text leads nowhere", "user", x.User, "err", err)
				return nil
			}
			actors[n] = a
			return nil
		})
	}
	_ = g.Wait() // no function returns an error
	found := mentions{}
	for n, a := range actors {
		if a != nil {
			found[handles[n]] = a
		}
	}
	return found, ctx.Err()
}

func (f *finder) withoutBlocked(ctx context.Context, x *exchange, found mentions) (mentions, error) {
	var ids []vocab.ID
	for _, a := range found {
		ids = append(ids, a.ID)
	}
	blocked, err := f.findBlocked(ctx, x, ids)
	for h, a := range found {
		if blocked[a.ID] {
			delete(found, h)
		}
	}
	return found, err
}

// findBlocked returns those of the ids that name actors that the user blocks.
func (f *finder) findBlocked(ctx context.Context, x *exchange, ids []vocab.ID) (blocked map[vocab.ID]bool, err error) {
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		blocked, err = tx.Blocks.FindAmong(ctx, ids)
		return err
	})
	return blocked, err
}

// linkText returns a function that is called for each part of the user's text that may become a
// link. That function returns the address of the link, or an empty text for no link.
func (x *exchange) linkText(local actor.Addresses) vocab.Href {
	return func(s vocab.Span) string {
		if s.Kind != vocab.HandleSpan {
			return local.HrefOf(x.User, s)
		}
		if a := x.mentions[strings.ToLower(s.Text)]; a != nil {
			return a.Page()
		}
		return ""
	}
}

// handleOf returns the handle of an actor, as people write it.
func handleOf(a *vocab.Actor) string { return "@" + a.PreferredUsername + "@" + a.ID.Host() }

// listHashtags returns the first maxHashtags hashtags of a text without their #. Hashtags that
// differ only in case count as one.
func listHashtags(text string) (tags []string) {
	for _, s := range vocab.Spans(text) {
		if s.Kind == vocab.HashtagSpan && len(tags) < maxHashtags {
			tags = addTag(tags, s.Text[1:])
		}
	}
	return tags
}

func addTag(tags []string, tag string) []string {
	if slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, tag) }) {
		return tags
	}
	return append(tags, tag)
}
