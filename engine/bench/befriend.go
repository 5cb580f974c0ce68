package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// sendOnce sends one request to the engine, and returns the body of the answer. It fails if the
// status of the answer is not equal to want.
func (i *testbed) sendOnce(ctx context.Context, request []byte, want int) ([]byte, error) {
	c, err := dialEngine(ctx, i.setup.Listen)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	status, body, err := c.sendRequest(request)
	if err == nil {
		err = checkStatus(status, want, body)
	}
	return body, err
}

// makeFollowing makes every user follow the actor a. The engine delivers a Follow of each user,
// and the actor accepts it.
func (i *testbed) makeFollowing(ctx context.Context, users []account, p *peer, a *actor) error {
	step, end := i.Progress("following")
	defer end()
	arrived := make(chan []byte, len(users))
	p.setListener(func(f arrival) {
		select {
		case arrived <- f.body:
		default: // the engine repeated a Follow
		}
	})
	defer p.setListener(func(arrival) {})
	err := i.sendAll(ctx, len(users), http.StatusCreated, func(n int) ([]byte, error) {
		return i.dispatchAction(ctx, users[n], "Follow", map[string]any{"actorUri": string(a.id)})
	})
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	accepted := newCounter(len(users), step)
	g, accepting := errgroup.WithContext(ctx)
	g.SetLimit(2 * runtime.NumCPU())
	for n := range users {
		follow, err := await(accepting, arrived, "a Follow")
		if err != nil {
			return errors.Join(g.Wait(), err)
		}
		g.Go(func() error {
			defer accepted()
			return i.acceptFollow(accepting, a, n, follow)
		})
	}
	return g.Wait()
}

// await waits for something that the engine must deliver.
func await[T any](ctx context.Context, arrived <-chan T, what string) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	select {
	case v := <-arrived:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, fault.Wrap(fault.Busy, what+" of the engine did not arrive", ctx.Err())
	}
}

// acceptFollow accepts a Follow.
func (i *testbed) acceptFollow(ctx context.Context, a *actor, n int, follow []byte) error {
	var f struct{ ID, Actor, Object, Type string }
	if err := json.Unmarshal(follow, &f); err != nil || f.Type != "Follow" {
		return fault.New(fault.Protocol, fmt.Sprintf("what came is no Follow: %.200s", follow))
	}
	request, err := a.signedPost(f.Actor+"/inbox", vocab.Doc{"@context": vocab.Context(), "id": fmt.Sprintf("%s/accepts/%d", a.id, n), "type": "Accept",
		"actor": string(a.id), "to": []string{f.Actor}, "object": vocab.Doc{"id": f.ID, "type": f.Type, "actor": f.Actor, "object": f.Object}}.JSON())
	if err != nil {
		return err
	}
	if _, err := i.sendOnce(ctx, request, http.StatusAccepted); err != nil {
		return fmt.Errorf("accept a follow: %w", err)
	}
	return nil
}

// makeFollowers makes the actors follow a user, and waits until the engine has accepted each
// Follow.
func (i *testbed) makeFollowers(ctx context.Context, u account, peers []*peer, followers []*actor) error {
	step, end := i.Progress("being followed")
	defer end()
	arrived := make(chan struct{}, len(followers))
	for _, p := range peers {
		p.setListener(func(arrival) {
			select {
			case arrived <- struct{}{}:
			default: // the engine repeated an Accept
			}
		})
		defer p.setListener(func(arrival) {})
	}
	err := i.sendAll(ctx, len(followers), http.StatusAccepted, func(n int) ([]byte, error) {
		f := followers[n]
		return f.signedPost(u.inbox(), vocab.Doc{"@context": vocab.Context(), "id": string(f.id) + "/follows/1", "type": "Follow",
			"actor": string(f.id), "object": string(u.id), "to": []string{string(u.id)}}.JSON())
	})
	if err != nil {
		return fmt.Errorf("be followed: %w", err)
	}
	for n := range followers {
		if _, err := await(ctx, arrived, "an Accept"); err != nil {
			return err
		}
		step(n+1, len(followers))
	}
	return nil
}

// sendAll prepares n requests and sends them. It fails unless the status of every answer equals
// want.
func (i *testbed) sendAll(ctx context.Context, n, want int, request func(n int) ([]byte, error)) error {
	requests, err := prepareRequests(ctx, n, func(int, int) {}, request)
	if err != nil {
		return err
	}
	s, err := sendTraffic(ctx, traffic{address: i.setup.Listen, requests: requests, n: n, clients: 8})
	if err != nil {
		return err
	}
	if s.statuses[want] != n {
		return fault.New(fault.Protocol, fmt.Sprintf("the engine answered %v, not %d to all: %.200s", s.statuses, want, s.body))
	}
	return nil
}
