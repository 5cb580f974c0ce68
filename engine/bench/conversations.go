package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// ConversationsLoad describes commits and messages to encrypted conversations.
type ConversationsLoad struct {
	Known int `json:"known"` // how many conversations one user has besides
	Busy  int `json:"busy"`  // how many of these get a message
	// Conversations is the number of conversations of one host that get commits in parallel.
	Conversations int `json:"conversations"`
	// Hosts is the number of hosts that get commits in parallel, each to its only
	// conversation.
	Hosts int `json:"hosts"`
	// Commits is the number of commits that each of the three measurements of commits sends.
	Commits  int `json:"commits"`
	Messages int `json:"messages"` // how many messages are sent to one conversation
	Clients  int `json:"clients"`
}

func (l ConversationsLoad) name() string { return "conversations" }

func (l ConversationsLoad) check() error {
	return firstError(checkRange("known", l.Known, 1, 1_000_000), checkRange("busy", l.Busy, 1, min(l.Known, 10_000)), // no more are live at a time
		checkRange("conversations", l.Conversations, 1, 1000), checkRange("hosts", l.Hosts, 1, 1000),
		checkRange("commits", l.Commits, max(l.Conversations, l.Hosts), 20_000), checkRange("messages", l.Messages, 1, 200_000), checkRange("clients", l.Clients, 1, 256)) // the engine lets 256 requests wait for one conversation
}

// Conversations measures the memory of conversations, and how fast commits and messages are
// accepted over HTTP.
func Conversations(ctx context.Context, c Config, l ConversationsLoad) (Report, error) {
	// The engine gets a connection for each host, so that connections are not reopened all the
	// time.
	return runLoad(ctx, c, engineSetup{Connections: max(64, l.Hosts+spare)}, l)
}

func (l ConversationsLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, 2+l.Hosts)
	if err != nil {
		return err
	}
	one, many, others := users[0], users[1], users[2:]
	known, err := i.measureKnown(ctx, many, l)
	if err != nil {
		return fmt.Errorf("known conversations: %w", err)
	}
	r.Measured = append(r.Measured, known)
	t, err := i.makeTalks(ctx, slices.Repeat([]account{one}, 1+l.Conversations))
	if err != nil {
		return err
	}
	spread, err := i.makeTalks(ctx, others)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name, unit string
		target     float64 // operations a second; 0: none
		clients    int
		requests   func(ctx context.Context, client int) ([][]byte, error)
	}{
		{"commits to one conversation, one after another", "commit", 0, 1, func(ctx context.Context, _ int) ([][]byte, error) { return commitRequests(ctx, t[:1], l.Commits) }},
		{fmt.Sprintf("commits to %d conversations of one host", l.Conversations), "commit", 500, min(l.Clients, l.Conversations), func(ctx context.Context, client int) ([][]byte, error) {
			return commitRequests(ctx, shareOf(t[1:], client, min(l.Clients, l.Conversations)), l.Commits/l.Conversations)
		}},
		{fmt.Sprintf("commits to conversations of %d hosts", l.Hosts), "commit", 1500, min(l.Clients, l.Hosts), func(ctx context.Context, client int) ([][]byte, error) {
			return commitRequests(ctx, shareOf(spread, client, min(l.Clients, l.Hosts)), l.Commits/l.Hosts)
		}},
		{fmt.Sprintf("messages of %d clients to one conversation", l.Clients), "message", 0, l.Clients, func(ctx context.Context, client int) ([][]byte, error) {
			return t[0].messageRequests(ctx, len(shareOf(make([]struct{}, l.Messages), client, l.Clients)))
		}},
	} {
		m, err := i.measureTalk(ctx, part.name, part.unit, part.clients, part.requests)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if part.target > 0 {
			m.Figures[0] = m.Figures[0].atLeast(part.target)
		}
		r.Measured = append(r.Measured, m)
	}
	return nil
}

// shareOf returns every n-th element of the slice all, beginning with the element all[from].
func shareOf[T any](all []T, from, n int) (share []T) {
	for k := from; k < len(all); k += n {
		share = append(share, all[k])
	}
	return share
}

// measureTalk sends the requests of all clients in parallel. Each client sends its requests one
// after another.
func (i *testbed) measureTalk(ctx context.Context, name, unit string, clients int, requests func(ctx context.Context, client int) ([][]byte, error)) (Measurement, error) {
	all := make([][][]byte, clients)
	for k := range all {
		var err error
		if all[k], err = requests(ctx, k); err != nil {
			return Measurement{}, err
		}
	}
	sum := sent{statuses: map[int]int{}}
	parts := make([]*sent, clients)
	c, err := i.timeWork(ctx, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		for k, requests := range all {
			g.Go(func() (err error) {
				parts[k], err = sendTraffic(ctx, traffic{address: i.setup.Listen, requests: requests, n: len(requests), clients: 1})
				return err
			})
		}
		return g.Wait()
	})
	if err != nil {
		return Measurement{}, err
	}
	for _, p := range parts {
		sum.add(p)
	}
	if accepted := sum.statuses[http.StatusCreated]; accepted != len(sum.latencies) {
		return Measurement{}, fault.New(fault.Protocol, fmt.Sprintf("the engine answered %v, not 201 to all: %.200s", sum.statuses, sum.body))
	}
	m := c.newMeasurement(name, len(sum.latencies))
	m.Counts[unit+"s"] = len(sum.latencies)
	sum.countAnswers(m.Counts, http.StatusCreated)
	m.Figures = append([]Figure{newFigure(unit+"s", float64(len(sum.latencies))/c.took.Seconds(), unit+"s/s")}, m.Figures...)
	m.Figures = append(m.Figures, spreadFigures(unit, sum.latencies)...)
	return m, nil
}

// talk is a conversation with one device in it.
type talk struct {
	path, token string
	device      *mlstest.Device
	group       *mlstest.Group // the state after all prepared commits
}

// makeTalks creates one conversation for each of the hosts.
func (i *testbed) makeTalks(ctx context.Context, hosts []account) ([]*talk, error) {
	step, end := i.Progress("making conversations")
	defer end()
	all := make([]*talk, len(hosts))
	for k, u := range hosts {
		t := &talk{token: u.token, device: mlstest.NewDevice(string(u.id), time.Now())}
		t.group = mlstest.NewGroup(t.device)
		request, err := apiRequest(ctx, http.MethodPost, i.setup.PublicURL+"/api/conversations", u.token, map[string]any{"groupInfo": t.group.Info(t.device)})
		if err != nil {
			return nil, err
		}
		answer, err := i.sendOnce(ctx, request, http.StatusCreated)
		if err != nil {
			return nil, fmt.Errorf("make a conversation: %w", err)
		}
		var made struct{ ID string }
		if err := json.Unmarshal(answer, &made); err != nil {
			return nil, err
		}
		t.path, all[k] = i.setup.PublicURL+"/api/conversations/"+made.ID, t
		step(k+1, len(hosts))
	}
	return all, nil
}

// commitRequests makes n commits to each of the conversations. It makes the first commit to every
// conversation, then the second to every conversation, and so on.
func commitRequests(ctx context.Context, all []*talk, n int) (requests [][]byte, err error) {
	for range n {
		for _, t := range all {
			request, err := t.commitRequest(ctx)
			if err != nil {
				return nil, err
			}
			requests = append(requests, request)
		}
	}
	return requests, nil
}

// commitRequest makes a commit that changes only the keys.
func (t *talk) commitRequest(ctx context.Context) ([]byte, error) {
	commit, next := t.group.Commit(t.device, mlstest.Change{})
	t.group = next
	body := map[string]any{"commit": commit, "groupInfo": next.Info(t.device)}
	return keyedRequest(ctx, http.MethodPost, t.path+"/commits", t.token, fmt.Sprint("epoch-", next.Epoch), body)
}

// messageRequests makes n messages of the current epoch.
func (t *talk) messageRequests(ctx context.Context, n int) ([][]byte, error) {
	return prepareRequests(ctx, n, func(int, int) {}, func(int) ([]byte, error) {
		return apiRequest(ctx, http.MethodPost, t.path+"/messages", t.token, map[string]any{"message": t.group.Message()})
	})
}
