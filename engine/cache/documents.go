package cache

import (
	"context"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Document is a document in the cache. A reader who asks for a document sets only its key and its
// revision.
type Document struct {
	Key      string
	Revision string // a text without line ends
	Body     string
	While    time.Duration // how long it is stored; 0 means the constant keep
}

// Documents fills in the bodies of the wanted revisions, in one round trip. It reports whether
// the cache had all of them.
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

// Keep stores documents. It skips documents that are too large, so readers do not find them in the
// cache.
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
