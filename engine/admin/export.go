package admin

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	"github.com/lightweb/lightweb/db/dump"
	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/vocab"
)

// writeDocuments writes the documents about a user that other programs read: the actor, and its
// collections. A backup of the whole instance has no such documents. writeDocuments reads each
// collection twice, because a tar entry begins with its size and a collection may not fit into
// memory.
func (t *backupRun) writeDocuments(ctx context.Context, u dbinstance.User, s *dump.Snapshot) error {
	if t.report.Whole {
		return nil
	}
	doc, err := t.in.Local.Document(u.Name)
	if err != nil {
		return err
	}
	if err := t.w.Add(archive.Name{Kind: archive.Document, Item: "actor.json"}, doc.JSON()); err != nil {
		return err
	}
	t.report.Counts = map[string]int{}
	for _, l := range dump.Listings() {
		if err := t.writeListing(ctx, s, l, t.in.Local.ID(u.Name)); err != nil {
			return err
		}
	}
	return nil
}

// writeListing writes a collection with all its items.
func (t *backupRun) writeListing(ctx context.Context, s *dump.Snapshot, l dump.Listing, me vocab.ID) error {
	var total int
	var size int64
	list := func(visit func(item []byte) error) error { return s.List(ctx, l, me, visit) }
	err := list(func(item []byte) error {
		total++
		size += int64(len(item))
		return nil
	})
	if err != nil {
		return err
	}
	size += int64(max(total-1, 0)) // the commas between the items
	head, err := listingHead(l, me, total)
	if err != nil {
		return err
	}
	t.report.Counts[l.Name] = total
	return t.w.Stream(archive.Name{Kind: archive.Document, Item: l.Name + ".json"}, int64(len(head))+size+int64(len(listingEnd)), func(w io.Writer) error {
		between := head
		err := list(func(item []byte) error {
			if _, err := w.Write(between); err != nil {
				return err
			}
			between = []byte(",")
			_, err := w.Write(item)
			return err
		})
		if err != nil {
			return err
		}
		if total == 0 {
			_, err = w.Write(head)
		}
		if err == nil {
			_, err = io.WriteString(w, listingEnd)
		}
		return err
	})
}

// listingEnd is the text after the items of a collection.
const listingEnd = "]}\n"

// listingHead returns the text before the items of a collection.
func listingHead(l dump.Listing, me vocab.ID, total int) ([]byte, error) {
	context, err := json.Marshal(vocab.Context())
	if err != nil {
		return nil, err
	}
	id, err := json.Marshal(me + "/" + vocab.ID(l.Name))
	return []byte(`{"@context":` + string(context) + `,"id":` + string(id) + `,"type":"` + vocab.OrderedCollection +
		`","totalItems":` + strconv.Itoa(total) + `,"orderedItems":[`), err
}
