// Package cache holds lists of a user's things in two layers in Redis: an index of lines, page by
// page, and the documents that lines name. Any key may vanish at any time, and Redis may be away:
// then the caller reads the database.
//
// Nothing stale is read after a write was acknowledged. Every list has a token, a text that is
// made once. A page is good while it begins with the token of its list; a write deletes the token
// before it is acknowledged, and so all pages of the list. A reader that finds no token makes one
// before it reads the database, so that a page made from an older state of the database never
// begins with a token that is still good. This process also remembers when it last wrote to a
// list, and believes no older token: that holds when Redis was away during the write, or lost the
// deletion in a failover. It believes none from before its own start, so that nothing counts that
// was written while no engine served.
//
// Documents need no token: a line says which revision it means, and another one counts as absent.
package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keep is how long Redis keeps what nobody writes again. It makes room by itself where it may
// evict keys; a server that also holds streams can only evict keys that end.
const keep = 7 * 24 * time.Hour

// MaxDocument bounds a document that is kept, in bytes: a page names hundreds.
const MaxDocument = 32 << 10

// maxAhead is how far ahead of this process's clock another one's token may be.
const maxAhead = time.Minute

// Config says where a cache is and how large its pages are.
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
	started int64                               // older tokens count for nothing
	written map[vocab.Username]map[string]int64 // when this process last wrote to a list
	filling map[string]bool                     // pages that are being made
}

// New returns a cache that believes nothing that was cached before.
func New(c Config) *Cache {
	now := c.Now().UnixMicro()
	return &Cache{Config: c, metrics: newMetrics(c.Metrics), last: now, started: now,
		written: map[vocab.Username]map[string]int64{}, filling: map[string]bool{}}
}

// Query asks for a part of a list.
type Query struct {
	User   vocab.Username
	List   string
	Beside string // a list without pages whose token is wanted too
	After  string // the mark of the line before; "" at the beginning
	Offset int    // the number of lines before, as far as is known
	Limit  int
}

func (c *Cache) pageOf(q Query) int { return q.Offset / c.PageSize }

// Part is what the index holds of a list.
type Part struct {
	IsHeld bool     // the lines are all that the query asks for
	Lines  []string // each begins with its mark and a space
	More   bool     // the list goes on after them
	Beside string   // the token of the list beside; "" when it is not known

	query Query
	token string // under which a page may be made; "" when none may
}

// Read looks for a part of a list.
func (c *Cache) Read(ctx context.Context, q Query) Part {
	p := Part{query: q}
	page, at := c.pageOf(q), q.Offset%c.PageSize
	first := at // the line before, which shows that the place has not moved
	if at == 0 {
		first = 1
	}
	g, err := c.Store.Of(q.User).Glance(ctx, []string{tokenKey(q.List), tokenKey(q.Beside)}, pageKey(q.List, page), first, at+1+q.Limit)
	if err != nil {
		c.metrics.reads.WithLabelValues("index", "away").Inc()
		return p
	}
	token, beside := c.believe(q.User, q.List, g.Texts[0]), c.believe(q.User, q.Beside, g.Texts[1])
	p.Beside = beside
	if token == "" || beside == "" {
		p.Beside = c.renew(ctx, q, token, beside)
	}
	if token != "" {
		p.token = token
		p.take(g, at)
	}
	c.metrics.count("index", p.IsHeld)
	return p
}

// take fills the part from a page that was read, if that is a good one and has all that is asked
// for.
func (p *Part) take(g keyspace.Glance, at int) {
	token, start, _ := strings.Cut(g.Head, " ")
	lines := g.Elements
	switch {
	case token != p.token:
		return
	case at == 0:
		if start != p.query.After {
			return
		}
	case len(lines) == 0 || markOf(lines[0]) != p.query.After:
		return
	default:
		lines = lines[1:]
	}
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

// The last element of a page.
const (
	endOfList = "."
	goesOn    = ">"
)

func markOf(line string) string {
	mark, _, _ := strings.Cut(line, " ")
	return mark
}

// IsFillable reports whether the page that the query is about is worth making: the list has been
// quiet since somebody read it last, and the page begins where the query does.
func (c *Cache) IsFillable(p Part) bool {
	return p.token != "" && !p.IsHeld && p.query.Offset%c.PageSize == 0
}

// Fill makes the page of a part that was not held. list reads its lines from the database: up to n
// after the place that the query named. While one caller makes a page, others make none.
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

// Drop makes every page of these lists worthless, before the write that changed them is
// acknowledged.
func (c *Cache) Drop(ctx context.Context, u vocab.Username, lists ...string) error {
	c.forget(u, lists)
	keys := make([]string, len(lists))
	for n, list := range lists {
		keys[n] = tokenKey(list)
	}
	_, err := c.Store.Of(u).Delete(ctx, keys...)
	return err
}

// forget has this process believe no token of the lists that is there now.
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

// tick returns a time that is later than every other that it returned and every token that was
// believed. The caller holds mu.
func (c *Cache) tick() int64 {
	c.last = max(c.last+1, c.Now().UnixMicro())
	return c.last
}

// believe returns the token if it is good: made after the start of this process and its last write
// to the list, and not in the future.
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

// renew makes the tokens that are missing, and returns the one of the list beside. The list itself
// gets its pages when it is read again: one that changes between any two reads is not worth them.
func (c *Cache) renew(ctx context.Context, q Query, token, beside string) string {
	var texts []keyspace.Text
	if token == "" {
		texts = append(texts, keyspace.Text{Key: tokenKey(q.List), Value: c.newToken(), While: keep})
	}
	if beside == "" {
		beside = c.newToken()
		texts = append(texts, keyspace.Text{Key: tokenKey(q.Beside), Value: beside, While: keep})
	}
	if err := c.Store.Of(q.User).SetTexts(ctx, texts); err != nil {
		return ""
	}
	return beside
}

func (c *Cache) newToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strconv.FormatInt(c.tick(), 10) + "-" + rand.Text()
}

// The keys of a user, after its name.
func tokenKey(list string) string { return feedLayer + ":" + list + ":gen" }

func pageKey(list string, page int) string {
	return feedLayer + ":" + list + ":page:" + strconv.Itoa(page)
}

// feedLayer is the layer of the index.
const feedLayer = "feed"
