package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/foreign"
	"github.com/lightweb/lightweb/engine/picture"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// visitor is called with each document and picture of an archive.
type visitor = func(name string, content io.Reader) error

// source calls the function visit with the documents and pictures of an archive, in the order of
// the archive.
type source func(ctx context.Context, visit visitor) error

// luggage is the content that an import brings, except the posts.
type luggage struct {
	profile registry.Profile // without pictures
	icon    *picture.Picture
	mutes   registry.Moderation
	domains []string // the domains that the user will mute
	wishes  []dbinstance.Wish
}

const maxItems = 1_000_000 // the most items in an outbox or another collection

// openExport opens an archive of lightweb, which must be the export of one user.
func (r *importRun) openExport(a *archive.Reader) error {
	if a.Manifest.Whole || len(a.Manifest.Users) != 1 {
		return fault.New(fault.Usage, "the file is a backup of an instance").WithHint("lightweb restore FILE --user NAME")
	}
	if r.report.User.IsZero() {
		r.report.User = a.Manifest.Users[0].Name
	}
	r.from = func(ctx context.Context, visit visitor) error {
		return a.Each(ctx, func(n archive.Name, content io.Reader) error {
			if n.Kind != archive.Document && n.Kind != archive.Media {
				return nil
			}
			return visit(n.Item, content)
		})
	}
	for _, f := range a.Files {
		if f.Name.Kind == archive.Config {
			var c registry.User
			if err := json.Unmarshal(f.Data, &c); err == nil { // a broken configuration was not in use either
				r.luggage.mutes = c.Moderation
			}
		}
	}
	return nil
}

// gatherArchive reads the actor of an archive first, and then the other files.
func (r *importRun) gatherArchive(ctx context.Context) error {
	var doc vocab.Doc
	err := r.from(ctx, func(name string, content io.Reader) (err error) {
		if name == "actor.json" {
			doc, err = foreign.ReadDoc(content)
		}
		return err
	})
	if err != nil {
		return err
	}
	id, err := doc.ID() // only the id is checked, because addresses in the rest may be names of files in the archive
	if id == "" || err != nil {
		return fault.Wrap(fault.Invalid, "the archive does not say whose it is: it lacks actor.json, or an actor in it", err)
	}
	if id.Same(r.in.Local.ID(r.report.User)) {
		return fault.New(fault.Conflict, fmt.Sprintf("the archive is of %s itself", r.report.User)).WithHint("lightweb restore, or user import without --as, restores an export of lightweb")
	}
	r.report.From = id
	r.luggage.profile = profileOf(doc)
	r.report.Mutes, r.report.Domains = len(r.luggage.mutes.MutedActors), len(r.luggage.mutes.MutedDomains)
	icon := lastPart(doc.Sub("icon").Text("url"))
	return r.from(ctx, func(name string, content io.Reader) error {
		switch name {
		case "outbox.json":
			return r.eachPost(content, r.countPost)
		case "following.json":
			return r.gatherIDs(content, dbinstance.WishFollow)
		case "blocks.json":
			return r.gatherIDs(content, dbinstance.WishBlock)
		case "likes.json":
			return countIDs(content, &r.report.Likes)
		case "bookmarks.json":
			return countIDs(content, &r.report.Bookmarks)
		case icon:
			return r.gatherIcon(ctx, content)
		}
		return nil
	})
}

func (r *importRun) countPost(p *foreign.Post) error {
	r.report.Posts++
	r.report.Attachments += p.Attachments
	return nil
}

// countIDs counts the items of a collection that is not imported, for the report. It refuses the
// archive if the collection is damaged.
func countIDs(content io.Reader, n *int) error {
	return foreign.ReadItems(content, func(item json.RawMessage) error {
		if *n++; *n > maxItems {
			return fault.New(fault.TooLarge, "a collection in the archive has over a million items")
		}
		_, err := foreign.ReadID(item)
		return err
	})
}

// eachPost calls the function visit with each post of an outbox, and counts the items that are not
// posts.
func (r *importRun) eachPost(content io.Reader, visit func(*foreign.Post) error) error {
	items, skipped := 0, 0
	err := foreign.ReadItems(content, func(item json.RawMessage) error {
		if items++; items > maxItems {
			return fault.New(fault.TooLarge, "the outbox has over a million items")
		}
		p, err := foreign.ReadPost(item, r.report.From)
		if err != nil {
			return err
		}
		if p == nil {
			skipped++
			return nil
		}
		return visit(p)
	})
	r.report.Skipped = skipped
	return err
}

// gatherIDs adds a wish for every actor in a collection. The engine carries out the wish later.
// The parameter kind says whether it is a block or a follow.
func (r *importRun) gatherIDs(content io.Reader, kind string) error {
	before := len(r.luggage.wishes)
	return foreign.ReadItems(content, func(item json.RawMessage) error {
		id, err := foreign.ReadID(item)
		if err != nil {
			return err
		}
		if len(r.luggage.wishes)-before >= dbinstance.MaxWishes {
			return fault.New(fault.TooLarge, fmt.Sprintf("the archive names more than %d accounts to %s", dbinstance.MaxWishes, kind))
		}
		r.wish(kind, string(id), id.Host())
		return nil
	})
}

// gatherIcon makes a new picture from the icon. It leaves the icon out if no picture can be made
// from it.
func (r *importRun) gatherIcon(ctx context.Context, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, picture.MaxBytes+1))
	if err != nil {
		return err
	}
	if made, err := picture.NewMaker().Make(ctx, data, http.DetectContentType(data), picture.IconSide); err == nil {
		r.luggage.icon = &made
	}
	return ctx.Err()
}

// wish adds an account to those that the user will block, mute or follow.
func (r *importRun) wish(kind, account, host string) {
	switch kind {
	case dbinstance.WishBlock:
		r.report.Blocks++
	case dbinstance.WishMute:
		r.report.Mutes++
	case dbinstance.WishFollow:
		r.report.Follows++
	}
	r.luggage.wishes = append(r.luggage.wishes, dbinstance.Wish{Kind: kind, Account: account, Host: host})
}

// profileOf returns the name, summary and fields of an actor, as plain text and within the
// bounds of a profile.
func profileOf(d vocab.Doc) registry.Profile {
	p := registry.Profile{Name: cleanText(d.Text("name"), registry.MaxName), Summary: cleanText(vocab.HTMLToText(d.Text("summary")), registry.MaxSummary)}
	for _, line := range d.Subs("attachment") {
		name, value := cleanText(line.Text("name"), registry.MaxFieldName), cleanText(vocab.HTMLToText(line.Text("value")), registry.MaxFieldValue)
		if name != "" && len(p.Fields) < registry.MaxFields {
			p.Fields = append(p.Fields, registry.Field{Name: name, Value: value})
		}
	}
	return p
}

func hostOfHandle(handle string) string { return handle[strings.LastIndex(handle, "@")+1:] }

// lastPart returns the text after the last slash of an address.
func lastPart(address string) string { return address[strings.LastIndex(address, "/")+1:] }

// cleanText returns the first n characters of a text, without those that no profile may have.
func cleanText(s string, n int) string {
	return truncateText(strings.Map(func(c rune) rune {
		if !registry.IsPrintable(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "")), n)
}
