package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// SocketsLoad describes clients with open WebSockets, while a peer sends posts to their users.
type SocketsLoad struct {
	Sockets int `json:"sockets"`
	Users   int `json:"users"` // the sockets are distributed among them
	Posts   int `json:"posts"` // sent one after another, each to the next user
}

func (l SocketsLoad) name() string { return "sockets" }

// maxSocketsOfUser is the number of sockets that the engine allows a user.
const maxSocketsOfUser = 10

func (l SocketsLoad) check() error {
	if l.Sockets > l.Users*maxSocketsOfUser {
		return fault.New(fault.Usage, fmt.Sprintf("%d users have %d sockets at most, not %d", l.Users, l.Users*maxSocketsOfUser, l.Sockets))
	}
	return firstError(checkRange("users", l.Users, 1, 400), checkRange("sockets", l.Sockets, l.Users, 4000), checkRange("posts", l.Posts, 1, 10_000))
}

// Sockets measures how much memory open WebSockets take, and how soon an event is pushed over
// them.
func Sockets(ctx context.Context, c Config, l SocketsLoad) (Report, error) {
	return runLoad(ctx, c, engineSetup{}, l)
}

func (l SocketsLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, l.Users)
	if err != nil {
		return err
	}
	p, a, err := i.makeAuthor(ctx, users, KeyRSA)
	if err != nil {
		return err
	}
	defer p.close()
	before, known := residentMemory(i.child.cmd.Process.Pid)
	sockets, closeAll, err := l.openSockets(ctx, i, users)
	defer closeAll()
	if err != nil {
		return err
	}
	after, _ := residentMemory(i.child.cmd.Process.Pid)
	m, err := l.measurePushes(ctx, i, users, a, sockets)
	if err != nil {
		return err
	}
	if known {
		m.Figures = append(m.Figures, newFigure("memory of all sockets", float64(max(after-before, 0))/(1<<20), "MB").atMost(64))
	}
	r.Measured = append(r.Measured, m)
	return nil
}

// openSockets opens the sockets of the users in turn, and waits for the greeting of each
// socket.
func (l SocketsLoad) openSockets(ctx context.Context, i *testbed, users []account) (all []*frames, closeAll func(), err error) {
	step, end := i.Progress("opening sockets")
	defer end()
	closeAll = func() {
		for _, f := range all {
			_ = f.Close() // no closing handshake is needed
		}
	}
	for n := range l.Sockets {
		f, err := i.openSocket(ctx, users[n%len(users)])
		if err != nil {
			return all, closeAll, fmt.Errorf("socket %d: %w", n+1, err)
		}
		all = append(all, f)
		step(n+1, l.Sockets)
	}
	return all, closeAll, nil
}

// openSocket opens a WebSocket (RFC 6455 §4.1) and reads its greeting.
func (i *testbed) openSocket(ctx context.Context, u account) (*frames, error) {
	c, err := dialEngine(ctx, i.setup.Listen)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, i.setup.PublicURL+"/ws", http.NoBody)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + u.token, "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AQIDBAUGBwgJCgsMDQ4PEA==", "Sec-WebSocket-Protocol": "lightweb.v1"} {
		r.Header.Set(name, value)
	}
	request, err := encodeRequest(r)
	if err == nil {
		_, err = c.Write(request)
	}
	if err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.answers, r) //nolint:bodyclose // a 101 response has no body
	if err != nil {
		return nil, fmt.Errorf("read the handshake: %w", err)
	}
	if err := checkStatus(answer.StatusCode, http.StatusSwitchingProtocols, nil); err != nil {
		return nil, err
	}
	f := &frames{c, c.answers}
	hello, err := f.next()
	if err == nil && !bytes.Contains(hello, []byte(`"hello"`)) {
		err = fault.New(fault.Protocol, fmt.Sprintf("a socket begins with %.100q", hello))
	}
	return f, err
}

// frames reads the messages that the engine sends over a WebSocket (RFC 6455 §5.2). These
// messages are texts, each in one frame.
type frames struct {
	io.Closer
	from *bufio.Reader
}

// next returns the next text.
func (f *frames) next() ([]byte, error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(f.from, head[:]); err != nil {
			return nil, err
		}
		size := uint64(head[1] & 0x7f)
		var long [8]byte
		switch size {
		case 126:
			if _, err := io.ReadFull(f.from, long[6:]); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(long[:])
		case 127:
			if _, err := io.ReadFull(f.from, long[:]); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(long[:])
		}
		if size > 1<<20 {
			return nil, fault.New(fault.Protocol, fmt.Sprintf("a frame of %d bytes", size))
		}
		payload := make([]byte, size)
		if _, err := io.ReadFull(f.from, payload); err != nil {
			return nil, err
		}
		if head[0] == 0x81 { // a complete text; pings get no answer, which the engine tolerates for ten seconds
			return payload, nil
		}
	}
}

// pushes are posts to the users in turn, whose events come over the sockets.
type pushes struct {
	users      int
	sockets    []*frames // those of the users in turn
	sender     *conn
	requests   [][]byte
	activities []vocab.ID // those that the requests have

	answers, arrivals []time.Duration // of the posts that were measured
}

// measurePushes sends the posts, and waits for each at every socket of its user.
func (l SocketsLoad) measurePushes(ctx context.Context, i *testbed, users []account, a *actor, sockets []*frames) (Measurement, error) {
	p := &pushes{users: len(users), sockets: sockets}
	var err error
	if p.requests, p.activities, err = i.signNotes(ctx, users, a, l.Users+l.Posts); err != nil {
		return Measurement{}, err
	}
	if p.sender, err = dialEngine(ctx, i.setup.Listen); err != nil {
		return Measurement{}, err
	}
	defer p.sender.Close()
	if err := p.passPreparation(ctx); err != nil {
		return Measurement{}, err
	}
	c, err := i.timeWork(ctx, func(ctx context.Context) error {
		for n := l.Users; n < len(p.requests); n++ {
			if err := p.measurePost(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Measurement{}, err
	}
	m := c.newMeasurement(fmt.Sprintf("%d sockets of %d users", l.Sockets, l.Users), len(p.arrivals))
	m.Counts["posts"], m.Counts["pushes"] = l.Posts, len(p.arrivals)
	spread := spreadFigures("push after the 202", p.arrivals)
	spread[0] = spread[0].atMost(20)
	m.Figures = append(append(spread, newFigure("202 p50", inMilliseconds(percentileOf(p.answers, 0.5)), "ms")), m.Figures...)
	return m, nil
}

// passPreparation sends each user one post, and reads the user's sockets up to its event. The
// events of the preparation, which may still come over the sockets, come before it.
func (p *pushes) passPreparation(ctx context.Context) error {
	for user := range p.users {
		if err := p.send(user); err != nil {
			return err
		}
		for _, f := range p.socketsOf(user) {
			if err := f.readUntil(ctx, p.activities[user]); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends a post.
func (p *pushes) send(post int) error {
	status, body, err := p.sender.sendRequest(p.requests[post])
	if err != nil {
		return err
	}
	return checkStatus(status, http.StatusAccepted, body)
}

// measurePost sends a post, and measures when it was answered and when its events arrived.
func (p *pushes) measurePost(ctx context.Context, post int) error {
	began := time.Now()
	if err := p.send(post); err != nil {
		return err
	}
	answered := time.Now()
	at, err := awaitPushes(ctx, p.socketsOf(post%p.users), p.activities[post])
	if err != nil {
		return err
	}
	p.answers = append(p.answers, answered.Sub(began))
	for _, t := range at {
		p.arrivals = append(p.arrivals, max(t.Sub(answered), 0)) // the push may arrive before the answer, because both follow the commit
	}
	return nil
}

// socketsOf returns the sockets of one user.
func (p *pushes) socketsOf(user int) (of []*frames) {
	for n := user; n < len(p.sockets); n += p.users {
		of = append(of, p.sockets[n])
	}
	return of
}

// readUntil reads texts up to the event of an activity.
func (f *frames) readUntil(ctx context.Context, activity vocab.ID) error {
	stop := context.AfterFunc(ctx, func() { _ = f.Close() }) // ends the reads
	defer stop()
	for {
		text, err := f.next()
		if err != nil || checkPush(text, activity) == nil {
			return err
		}
	}
}

// awaitPushes waits until each of the sockets has received the event of an activity, and returns
// the times of arrival.
func awaitPushes(ctx context.Context, sockets []*frames, activity vocab.ID) ([]time.Time, error) {
	var g errgroup.Group
	at, texts := make([]time.Time, len(sockets)), make([][]byte, len(sockets))
	stop := context.AfterFunc(ctx, func() {
		for _, f := range sockets {
			_ = f.Close() // ends the reads
		}
	})
	defer stop()
	for n, f := range sockets {
		g.Go(func() (err error) {
			texts[n], err = f.next()
			at[n] = time.Now()
			return err
		})
	}
	err := g.Wait()
	for _, text := range texts {
		if err == nil {
			err = checkPush(text, activity)
		}
	}
	return at, err
}

// checkPush fails unless a text is the event of the activity. Each activity of the benchmark has
// one event, so a socket that is sent one twice, or misses one, is sent that of another activity
// next.
func checkPush(text []byte, activity vocab.ID) error {
	var e struct {
		ID      string
		Payload struct{ ActivityURI vocab.ID }
	}
	if err := json.Unmarshal(text, &e); err != nil || e.ID == "" || e.Payload.ActivityURI != activity {
		return fault.New(fault.Protocol, fmt.Sprintf("a socket was sent %.200q, not the event of %s", text, activity))
	}
	return nil
}
