package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FeedLoad is a client that reads the first page of a feed over and over, and a server that reads
// that of an outbox.
type FeedLoad struct {
	Items    int           `json:"items"` // in the feed
	Clients  int           `json:"clients"`
	Uncached bool          `json:"uncached"` // the engine has no Redis
	Duration time.Duration `json:"-"`        // of each
	Seconds  float64       `json:"seconds"`  // Duration, in the report
}

func (l FeedLoad) name() string { return "feed" }

func (l FeedLoad) check() error {
	if l.Duration < 10*time.Millisecond || l.Duration > 5*time.Minute {
		return fault.New(fault.Usage, fmt.Sprintf("--duration %s is not from 10ms to 5m", l.Duration))
	}
	return firstError(checkRange("items", l.Items, 1, 100_000), checkRange("clients", l.Clients, 1, 512))
}

// feedPage is how many items a client asks for.
const feedPage = 20

// maxPages bounds how many pages are read, whatever the time.
const maxPages = 5_000_000

// Feed measures how fast pages of a feed and of an outbox are read over HTTP.
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
	if err := l.readPages(ctx, i, r, fmt.Sprintf("pages of %d", feedPage), feed, target); err != nil || l.Uncached {
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
	return l.readPages(ctx, i, r, "pages of the outbox, for anybody", outbox, 8000)
}

// readPages measures how fast the answer to one request is read, which is a page of a feed or
// collection.
func (l FeedLoad) readPages(ctx context.Context, i *testbed, r *Report, name string, request []byte, target float64) error {
	var s *sent
	c, err := i.timeWork(ctx, func(ctx context.Context) (err error) {
		s, err = sendTraffic(ctx, traffic{address: i.setup.Listen, requests: [][]byte{request}, n: maxPages, clients: l.Clients, during: l.Duration})
		return err
	})
	if err != nil {
		return err
	}
	var page struct {
		Items        []json.RawMessage `json:"items"`
		OrderedItems []json.RawMessage `json:"orderedItems"`
	}
	items := func() int { return len(page.Items) + len(page.OrderedItems) }
	if err := json.Unmarshal(s.body, &page); err != nil || items() != min(feedPage, l.Items) {
		return fault.New(fault.Protocol, fmt.Sprintf("the last page held %d items: %.200s", items(), s.body))
	}
	pages := len(s.latencies)
	m := c.newMeasurement(name, pages)
	m.Counts["pages"] = pages
	s.countAnswers(m.Counts, http.StatusOK)
	m.Figures = append([]Figure{newFigure("pages", float64(s.statuses[http.StatusOK])/c.took.Seconds(), "pages/s").atLeast(target)}, m.Figures...)
	m.Figures = append(m.Figures, spreadFigures("page", s.latencies)...)
	m.Figures = append(m.Figures, newFigure("bytes of a page", float64(len(s.body)), "bytes").atMost(40_000))
	r.Measured = append(r.Measured, m)
	return nil
}
