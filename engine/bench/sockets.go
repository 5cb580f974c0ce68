package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
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

// measurePushes sends the posts, and waits for each at every socket of its user.
func (l SocketsLoad) measurePushes(ctx context.Context, i *testbed, users []account, a *actor, sockets []*frames) (Measurement, error) {
	requests, err := i.signNotes(ctx, users, a, l.Posts)
	if err != nil {
		return Measurement{}, err
	}
	sender, err := dialEngine(ctx, i.setup.Listen)
	if err != nil {
		return Measurement{}, err
	}
	defer sender.Close()
	var answers, pushes []time.Duration
	c, err := i.timeWork(ctx, func(ctx context.Context) error {
		for n, request := range requests {
			began := time.Now()
			status, body, err := sender.sendRequest(request)
			if err == nil {
				err = checkStatus(status, http.StatusAccepted, body)
			}
			if err != nil {
				return err
			}
			answered := time.Now()
			at, err := awaitPushes(ctx, sockets, n%len(users), len(users))
			if err != nil {
				return err
			}
			answers = append(answers, answered.Sub(began))
			for _, t := range at {
				pushes = append(pushes, max(t.Sub(answered), 0)) // the push may arrive before the answer, because both follow the commit
			}
		}
		return nil
	})
	if err != nil {
		return Measurement{}, err
	}
	m := c.newMeasurement(fmt.Sprintf("%d sockets of %d users", l.Sockets, l.Users), len(pushes))
	m.Counts["posts"], m.Counts["pushes"] = l.Posts, len(pushes)
	spread := spreadFigures("push after the 202", pushes)
	spread[0] = spread[0].atMost(20)
	m.Figures = append(append(spread, newFigure("202 p50", inMilliseconds(percentileOf(answers, 0.5)), "ms")), m.Figures...)
	return m, nil
}

// awaitPushes waits until each socket of one user has received an event, and returns the times
// of arrival.
func awaitPushes(ctx context.Context, sockets []*frames, user, users int) ([]time.Time, error) {
	var g errgroup.Group
	var of []*frames
	for n := user; n < len(sockets); n += users {
		of = append(of, sockets[n])
	}
	at := make([]time.Time, len(of))
	stop := context.AfterFunc(ctx, func() {
		for _, f := range of {
			_ = f.Close() // ends the reads
		}
	})
	defer stop()
	for n, f := range of {
		g.Go(func() error {
			_, err := f.next()
			at[n] = time.Now()
			return err
		})
	}
	return at, g.Wait()
}
