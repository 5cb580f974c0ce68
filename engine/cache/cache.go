// Package cache stores lists that belong to a user in Redis. It has two layers: an index, with the
// lines of each list page by page, and the documents that the lines name. Any key may vanish at
// any time, and Redis may be unavailable. In both cases the caller reads the database.
//
// No reader gets stale data after a write was acknowledged. Every list has a token, a text that
// is never made twice. A page is valid while it begins with the token of its list. Before a
// write is acknowledged, it deletes the token, and so invalidates all pages of the list. A
// reader that finds no token makes one before it reads the database. So a page made from an
// older state of the database never begins with a valid token. This process also remembers when
// it last wrote to a list, and accepts no older token. That protects readers even if Redis was
// unavailable during the write, or lost the deletion in a failover. It accepts no token from
// before its own start, because a command may have written to the database while no engine ran.
//
// Documents need no token, because a line names a revision of its document, and another revision
// counts as absent.
package cache

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keep is the time for which Redis stores a key that nobody writes again. All keys expire, because
// a Redis that also stores streams can make room only by evicting keys that expire.
const keep = 7 * 24 * time.Hour

// maxPages is the greatest number of pages of a list that are made. The lines after these pages
// are read from the database. A client can make a cursor with any offset, and each cursor would
// need another page.
const maxPages = 20

// MaxDocument is the size of the largest document that is cached, in bytes. It is small, because
// a page names hundreds of documents.
const MaxDocument = 32 << 10

// maxAhead is the longest time by which another process's token may be ahead of this process's
// clock.
const maxAhead = time.Minute

// Config says where a cache is stored, and how large its pages are.
type Config struct {
	Store    *keyspace.Store
	PageSize int                   // lines
	Metrics  prometheus.Registerer // may be nil
	Now      func() time.Time
}

// Cache is the cache of all users. Its methods may be called concurrently.
type Cache struct {
	Config
	metrics *metrics

	mu      sync.Mutex
	last    int64                               // the time of the newest token that is known, in microseconds
	started int64                               // older tokens are not accepted
	written map[vocab.Username]map[string]int64 // when this process last wrote to a list
	filling map[string]bool                     // pages that are being made
}

// New returns a cache that accepts no token that was made before now.
func New(c Config) *Cache {
	now := c.Now().UnixMicro()
	return &Cache{Config: c, metrics: newMetrics(c.Metrics), last: now, started: now,
		written: map[vocab.Username]map[string]int64{}, filling: map[string]bool{}}
}

// Query asks for a part of a list.
type Query struct {
	User   vocab.Username
	List   string
	Beside string // a list without pages whose token is read, too
	After  string // the mark of the line before the part; "" at the beginning
	Offset int    // the number of lines before the part, as far as it is known
	Limit  int
}

func (c *Cache) pageOf(q Query) int { return q.Offset / c.PageSize }

// Part is a part of a list, as far as the index has it.
type Part struct {
	IsHeld bool     // Lines has all lines that the query asks for
	Lines  []string // each begins with its mark and a space
	More   bool     // the list has more lines after them
	Beside string   // the token of Query.Beside; "" if it is not known

	query  Query
	token  string    // the token for a new page; "" if none may be made
	tokens [2]string // of the lists Query.List and Query.Beside; "" if not known
}

// State returns a text that two readers get only if no write to the two lists of the query was
// acknowledged between their calls of Read. So one of them may be shown what the other one then
// read from the database. It returns "" if that is not known.
func (p Part) State() string {
	if p.tokens[0] == "" || p.tokens[1] == "" {
		return ""
	}
	return p.tokens[0] + " " + p.tokens[1]
}

// Read looks for a part of a list in the index.
func (c *Cache) Read(ctx context.Context, q Query) Part {
	p := Part{query: q}
	page, at := c.pageOf(q), q.Offset%c.PageSize
	g, err := c.Store.Of(q.User).Glance(ctx, []string{tokenKey(q.List), tokenKey(q.Beside)}, pageKey(q.List, page), at+1+q.Limit)
	if err != nil {
		c.metrics.reads.WithLabelValues("index", "away").Inc()
		return p
	}
	p.tokens = [2]string{c.believe(q.User, q.List, g.Texts[0]), c.believe(q.User, q.Beside, g.Texts[1])}
	if p.token = p.tokens[0]; p.token != "" {
		p.take(g.Elements, at)
	}
	if p.State() == "" {
		p.tokens = c.renew(ctx, q, p.tokens, g.Texts)
	}
	p.Beside = p.tokens[1]
	c.metrics.count("index", p.IsHeld)
	return p
}

// take fills the part from the elements of a page, if the page is valid and has all that the query
// asks for. The first element is the page's head. The parameter at is the number of lines of the
// page before the part. The mark of the last of these lines shows that the place has not moved.
func (p *Part) take(elements []string, at int) {
	if len(elements) <= at {
		return
	}
	token, start, _ := strings.Cut(elements[0], " ")
	if at > 0 {
		start = markOf(elements[at])
	}
	if token != p.token || start != p.query.After {
		return
	}
	lines := elements[at+1:]
	switch n := len(lines); {
	case n == 0:
		return
	case n > p.query.Limit:
		p.Lines, p.More = lines[:p.query.Limit], lines[p.query.Limit] != endOfList
	case lines[n-1] == endOfList:
		p.Lines = lines[:n-1]
	default: // the rest is on the next page
		return
	}
	p.IsHeld = true
}

// The last element of a page says whether the list ends with the page or goes on.
const (
	endOfList = "."
	goesOn    = ">"
)

func markOf(line string) string {
	mark, _, _ := strings.Cut(line, " ")
	return mark
}

// IsFillable reports whether the page of the query is worth making. Four conditions must hold. The
// index does not have the part, the list has not changed since it was last read, the page begins
// where the query does, and it is one of the first maxPages.
func (c *Cache) IsFillable(p Part) bool {
	return p.token != "" && !p.IsHeld && p.query.Offset%c.PageSize == 0 && c.pageOf(p.query) < maxPages
}

// Fill makes the page of a part that the index did not have. The function list reads from the
// database up to n lines that follow the place of the query. While one caller makes a page, others
// do not make it.
func (c *Cache) Fill(ctx context.Context, p Part, list func(ctx context.Context, n int) ([]string, error)) error {
	key := p.query.User.String() + " " + pageKey(p.query.List, c.pageOf(p.query))
	if !c.beginFill(key) {
		return nil
	}
	defer c.endFill(key)
	lines, err := list(ctx, c.PageSize+1)
	if err != nil {
		return fmt.Errorf("fill page of %s: %w", p.query.List, err)
	}
	end := endOfList
	if len(lines) > c.PageSize {
		lines, end = lines[:c.PageSize], goesOn
	}
	head := p.token
	if p.query.After != "" {
		head += " " + p.query.After
	}
	return c.Store.Of(p.query.User).ReplaceList(ctx, pageKey(p.query.List, c.pageOf(p.query)), append(append([]string{head}, lines...), end), keep)
}

func (c *Cache) beginFill(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filling[key] {
		return false
	}
	c.filling[key] = true
	return true
}

func (c *Cache) endFill(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.filling, key)
}

// Drop invalidates every page of these lists, and deletes the documents with these keys. It is
// called before the write that changed them is acknowledged. The revisions in the lines keep
// readers from the documents anyway; they are deleted so that Redis does not store what a user has
// deleted. It needs one round trip, and another one for each dropStep documents.
func (c *Cache) Drop(ctx context.Context, u vocab.Username, lists, documents []string) (err error) {
	c.forget(u, lists)
	keys := make([]string, 0, len(lists)+len(documents))
	for _, list := range lists {
		keys = append(keys, tokenKey(list))
	}
	for some := range slices.Chunk(append(keys, documents...), dropStep) {
		if _, failed := c.Store.Of(u).Delete(ctx, some...); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// dropStep limits the keys that Drop deletes in one call, so that a call with many long keys ends
// in time.
const dropStep = 1000

// forget makes this process refuse every token of the lists that was made until now.
func (c *Cache) forget(u vocab.Username, lists []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, of := c.tick(), c.written[u]
	if of == nil {
		of = map[string]int64{}
		c.written[u] = of
	}
	for _, list := range lists {
		of[list] = now
	}
}

// tick returns a time later than every time that it returned before, and than every token that
// was accepted. The caller holds mu.
func (c *Cache) tick() int64 {
	c.last = max(c.last+1, c.Now().UnixMicro())
	return c.last
}

// believe returns the token if it is valid: made after the start of this process and after its
// last write to the list, and not in the future. Otherwise it returns "".
func (c *Cache) believe(u vocab.Username, list, token string) string {
	text, _, _ := strings.Cut(token, "-")
	made, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if made <= c.started || made <= c.written[u][list] || made > max(c.last, c.Now().Add(maxAhead).UnixMicro()) {
		return ""
	}
	c.last = max(c.last, made)
	return token
}

// renew makes the tokens that are missing in the parameter known, and returns all. The parameter
// found has the texts in Redis of which known has the valid ones. Readers who miss the same token
// at the same time agree on one. If q.List had no token, only a later read makes a page of it. So
// no page is made of a list that changes before every read.
func (c *Cache) renew(ctx context.Context, q Query, known [2]string, found []string) [2]string {
	var texts []keyspace.Text
	var missing []int
	lists := [2]string{q.List, q.Beside}
	for n, list := range lists {
		if known[n] == "" {
			missing = append(missing, n)
			texts = append(texts, keyspace.Text{Key: tokenKey(list), Value: c.newToken(), While: keep, IfMissing: found[n] == ""})
		}
	}
	agreed, err := c.Store.Of(q.User).AgreeTexts(ctx, texts)
	if err != nil {
		return known
	}
	for n, at := range missing {
		known[at] = c.believe(q.User, lists[at], agreed[n])
	}
	return known
}

func (c *Cache) newToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strconv.FormatInt(c.tick(), 10) + "-" + rand.Text()
}

// The names of a user's keys. In Redis they follow the user's name.
func tokenKey(list string) string { return feedLayer + ":" + list + ":gen" }

func pageKey(list string, page int) string {
	return feedLayer + ":" + list + ":page:" + strconv.Itoa(page)
}

// feedLayer is the first part of the names of the index's keys.
const feedLayer = "feed"
