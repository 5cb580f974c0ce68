package admin

import (
	"context"
	"io"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/foreign"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/search"
	"github.com/lightweb/lightweb/engine/vocab"
)

const postBatch = 200 // posts in one transaction

// store stores the posts and everything else that the import gathered. Each part may be stored
// again, so a second run of the same import completes one that was killed.
func (r *importRun) store(ctx context.Context) error {
	if err := r.storeProfile(); err != nil {
		return err
	}
	if r.report.Posts > 0 {
		if err := r.storePosts(ctx); err != nil {
			return err
		}
	}
	if len(r.luggage.wishes) == 0 {
		return nil
	}
	added, err := r.in.DB.Instance.Wishes.Add(ctx, r.report.User, r.luggage.wishes, r.in.Now())
	r.report.Waiting = added
	return err
}

// storeProfile fills the empty parts of the user's profile, and adds muted actors, domains and
// keywords.
func (r *importRun) storeProfile() error {
	var icon vocab.ID
	if made := r.luggage.icon; made != nil {
		name, err := r.in.Registry.StorePicture(r.report.User, made.Data, made.Extension)
		if err != nil {
			return err
		}
		icon = r.in.Local.Picture(r.report.User, name)
	}
	return r.in.Registry.UpdateUser(r.report.User, r.mergeProfile(icon))
}

// mergeProfile returns the change that storeProfile makes, with the address of the new icon.
func (r *importRun) mergeProfile(icon vocab.ID) func(*registry.User) error {
	return func(c *registry.User) error {
		p, from := &c.Profile, r.luggage.profile
		if p.Name == "" {
			p.Name = from.Name
		}
		if p.Summary == "" {
			p.Summary = from.Summary
		}
		if len(p.Fields) == 0 {
			p.Fields = from.Fields
		}
		if p.Icon == "" {
			p.Icon = icon
		}
		m := &c.Moderation
		m.MutedActors = addMissing(m.MutedActors, r.luggage.mutes.MutedActors)
		m.MutedDomains = addMissing(m.MutedDomains, append(slices.Clone(r.luggage.mutes.MutedDomains), r.luggage.domains...))
		m.MutedKeywords = addMissing(m.MutedKeywords, r.luggage.mutes.MutedKeywords)
		return nil
	}
}

// addMissing returns list followed by the elements of others that list lacks.
func addMissing[T comparable](list, others []T) []T {
	has := map[T]bool{}
	for _, v := range list {
		has[v] = true
	}
	list = slices.Clone(list)
	for _, v := range others {
		if !has[v] {
			has[v] = true
			list = append(list, v)
		}
	}
	return list
}

// storePosts adds the posts of the archive to those that are stored already.
func (r *importRun) storePosts(ctx context.Context) error {
	var batch []user.ArchivedPost
	done := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		added := 0
		err := r.in.DB.Write(ctx, r.report.User, func(ctx context.Context, tx *user.Tx) (err error) {
			added, err = tx.Posts.AddArchived(ctx, batch)
			return err
		})
		r.report.Added += added
		done, batch = done+len(batch), batch[:0]
		if r.ask.Progress != nil {
			r.ask.Progress(done, r.report.Posts)
		}
		return err
	}
	now := r.in.Now().UTC()
	return r.from(ctx, func(name string, content io.Reader) error {
		if name != "outbox.json" {
			return nil
		}
		err := r.eachPost(content, func(p *foreign.Post) error {
			if p.Published.IsZero() || p.Published.After(now) {
				p.Published = now
			}
			batch = append(batch, user.ArchivedPost{Activity: p.Activity, Object: p.Object, Actor: r.report.From, Published: p.Published,
				ActivityDoc: p.ActivityDoc, ObjectDoc: p.ObjectDoc, Readable: p.Readable, Words: search.WordsOf(p.ObjectDoc, p.Readable)})
			if len(batch) < postBatch {
				return nil
			}
			return flush()
		})
		if err != nil {
			return err
		}
		return flush()
	})
}
