package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FeedLoad describes clients that repeatedly read the first page of a feed, the first page of an
// outbox (as other servers do), a thread, and the results of a search. If Uncached is true, only
// the feed is read.
type FeedLoad struct {
	Items    int           `json:"items"` // how many items the feed has
	Clients  int           `json:"clients"`
	Uncached bool          `json:"uncached"` // the engine has no Redis
	Duration time.Duration `json:"-"`        // how long each measurement lasts
	Seconds  float64       `json:"seconds"`  // Duration, in the report
}

func (l FeedLoad) name() string { return "feed" }

func (l FeedLoad) check() error {
	if l.Duration < 10*time.Millisecond || l.Duration > 5*time.Minute {
		return fault.New(fault.Usage, fmt.Sprintf("--duration %s is not from 10ms to 5m", l.Duration))
	}
	return firstError(checkRange("items", l.Items, 1, 100_000), checkRange("clients", l.Clients, 1, 512))
}

// feedPage is the number of items that a client requests.
const feedPage = 20

// maxPages is the greatest number of pages that are read, even if time is left.
const maxPages = 5_000_000

// Feed measures how fast pages of a feed and of an outbox, threads and results of searches are
// read over HTTP.
func Feed(ctx context.Context, c Config, l FeedLoad) (Report, error) {
	l.Seconds = l.Duration.Seconds()
	return runLoad(ctx, c, engineSetup{NoRedis: l.Uncached}, l)
}

func (l FeedLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, 1)
	if err != nil {
		return err
	}
	p, a, err := i.makeAuthor(ctx, users, KeyRSA)
	if err != nil {
		return err
	}
	defer p.close()
	if err := i.fillInbox(ctx, users[0], a, l.Items); err != nil {
		return err
	}
	feed, err := apiRequest(ctx, http.MethodGet, fmt.Sprintf("%s/api/feed?limit=%d", i.setup.PublicURL, feedPage), users[0].token, nil)
	if err != nil {
		return err
	}
	target := 6000.0
	if l.Uncached {
		target = 2500
	}
	loop := traffic{address: i.setup.Listen, requests: [][]byte{feed}, n: maxPages, clients: l.Clients, during: l.Duration}
	if err := i.readPages(ctx, r, fmt.Sprintf("pages of %d", feedPage), loop, min(feedPage, l.Items), target); err != nil || l.Uncached {
		return err
	}
	err = i.sendAll(ctx, 2*feedPage, http.StatusCreated, func(n int) ([]byte, error) {
		return i.dispatchAction(ctx, users[0], "CreateNote", map[string]any{"content": fmt.Sprint("post ", n), "to": []string{string(vocab.Public)}})
	})
	if err != nil {
		return err
	}
	outbox, err := anonymousRequest(ctx, i.setup.PublicURL+"/users/"+users[0].name.String()+"/outbox?page=true")
	if err != nil {
		return err
	}
	loop.requests = [][]byte{outbox}
	if err := i.readPages(ctx, r, "pages of the outbox, for anybody", loop, min(feedPage, l.Items), 8000); err != nil {
		return err
	}
	if err := i.readThread(ctx, r, users[0], loop); err != nil {
		return err
	}
	return i.readSearches(ctx, r, users[0])
}

// readThread measures how fast a thread of a post and its answers is read.
func (i *testbed) readThread(ctx context.Context, r *Report, u account, loop traffic) error {
	note, err := i.createNote(ctx, u, "the first of a thread")
	if err != nil {
		return err
	}
	err = i.sendAll(ctx, feedPage, http.StatusCreated, func(n int) ([]byte, error) {
		return i.dispatchAction(ctx, u, "Reply", map[string]any{"objectId": note, "content": fmt.Sprint("answer ", n)})
	})
	if err != nil {
		return err
	}
	thread, err := apiRequest(ctx, http.MethodGet, i.setup.PublicURL+"/api/objects/thread?uri="+url.QueryEscape(note), u.token, nil)
	if err != nil {
		return err
	}
	loop.requests = [][]byte{thread}
	return i.readPages(ctx, r, fmt.Sprintf("threads of a post and %d answers", feedPage), loop, feedPage, 0)
}

// createNote writes a public post as the user, and returns the id of the post.
func (i *testbed) createNote(ctx context.Context, u account, content string) (string, error) {
	request, err := i.dispatchAction(ctx, u, "CreateNote", map[string]any{"content": content, "to": []string{string(vocab.Public)}})
	if err != nil {
		return "", err
	}
	body, err := i.sendOnce(ctx, request, http.StatusCreated)
	if err != nil {
		return "", err
	}
	var made struct {
		ObjectID string `json:"objectId"`
	}
	return made.ObjectID, json.Unmarshal(body, &made)
}

// searches is the number of searches that the engine allows a user in one burst.
const searches = 30

// readSearches measures a user's searches, one after another. It first waits until the search
// index is complete.
func (i *testbed) readSearches(ctx context.Context, r *Report, u account) error {
	search, err := apiRequest(ctx, http.MethodGet, fmt.Sprintf("%s/api/search?q=post&limit=%d", i.setup.PublicURL, feedPage), u.token, nil)
	if err != nil {
		return err
	}
	asked := 0
	for complete := false; !complete; asked++ {
		body, err := i.sendOnce(ctx, search, http.StatusOK)
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		var page struct{ Complete bool }
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		complete = page.Complete
	}
	return i.readPages(ctx, r, "searches, one after another", traffic{address: i.setup.Listen, requests: [][]byte{search}, n: searches - asked, clients: 1}, feedPage, 0)
}

// readPages measures how fast one request is answered. It fails unless the last answer is a page
// with that number of items: the parameter items.
func (i *testbed) readPages(ctx context.Context, r *Report, name string, load traffic, items int, target float64) error {
	var s *sent
	c, err := i.timeWork(ctx, func(ctx context.Context) (err error) {
		s, err = sendTraffic(ctx, load)
		return err
	})
	if err != nil {
		return err
	}
	var page struct {
		Items        []json.RawMessage `json:"items"`
		OrderedItems []json.RawMessage `json:"orderedItems"`
		Replies      []json.RawMessage `json:"replies"`
	}
	err = json.Unmarshal(s.body, &page)
	if held := len(page.Items) + len(page.OrderedItems) + len(page.Replies); err != nil || held != items {
		return fault.New(fault.Protocol, fmt.Sprintf("the last page held %d items: %.200s", held, s.body))
	}
	pages := len(s.latencies)
	m := c.newMeasurement(name, pages)
	m.Counts["pages"] = pages
	s.countAnswers(m.Counts, http.StatusOK)
	rate := newFigure("pages", float64(s.statuses[http.StatusOK])/c.took.Seconds(), "pages/s")
	if target > 0 {
		rate = rate.atLeast(target)
	}
	m.Figures = append([]Figure{rate}, m.Figures...)
	m.Figures = append(m.Figures, spreadFigures("page", s.latencies)...)
	m.Figures = append(m.Figures, newFigure("bytes of a page", float64(len(s.body)), "bytes").atMost(40_000))
	r.Measured = append(r.Measured, m)
	return nil
}
