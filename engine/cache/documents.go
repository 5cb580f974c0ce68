package cache

import (
	"context"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Document is a document, or a revision of one that a reader asks for.
type Document struct {
	Key      string
	Revision string // without a line end
	Body     string
	While    time.Duration // that it is kept; 0: as long as there is room
}

// Documents fills in the bodies of the revisions that are asked for, in one round trip, and
// reports whether all were there.
func (c *Cache) Documents(ctx context.Context, u vocab.Username, wanted []Document) bool {
	if len(wanted) == 0 {
		return true
	}
	keys := make([]string, len(wanted))
	for n, w := range wanted {
		keys[n] = w.Key
	}
	texts, err := c.Store.Of(u).Texts(ctx, keys)
	if err != nil {
		c.metrics.reads.WithLabelValues("documents", "away").Inc()
		return false
	}
	whole := true
	for n, text := range texts {
		revision, body, _ := strings.Cut(text, "\n")
		if revision != wanted[n].Revision {
			whole = false
			continue
		}
		wanted[n].Body = body
	}
	c.metrics.count("documents", whole)
	return whole
}

// Keep keeps documents. One that is too large is not kept, and so never found.
func (c *Cache) Keep(ctx context.Context, u vocab.Username, all []Document) error {
	var texts []keyspace.Text
	for _, d := range all {
		if len(d.Body) > MaxDocument {
			continue
		}
		if d.While == 0 {
			d.While = keep
		}
		texts = append(texts, keyspace.Text{Key: d.Key, Value: d.Revision + "\n" + d.Body, While: d.While})
	}
	if len(texts) == 0 {
		return nil
	}
	return c.Store.Of(u).SetTexts(ctx, texts)
}
