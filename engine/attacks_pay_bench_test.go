package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// BenchmarkPostsBesideManyNames sends 500 posts to one user, 20 a second, alone and then while
// another server sends 50 activities a second that name all users of the instance (100, or 1,000
// with LIGHTWEB_SIEGE) and concern none of them (PAY-05 of docs/security.md). It reports the 99th
// percentile of the posts' answers for both.
func BenchmarkPostsBesideManyNames(b *testing.B) {
	home := enginetest.Start(b)
	alice := home.CreateUser(b, "alice")
	named := []any{alice.ID}
	for n := range sized(99, 999) {
		named = append(named, home.CreateUser(b, fmt.Sprint("reader", n)).ID)
	}
	carol := peertest.New(b, "127.0.0.3").Actor("/users/carol")
	mallory := peertest.New(b, "127.0.0.2").Actor("/users/mallory")
	for round := 0; b.Loop(); round++ {
		alone := postsTake(b, carol, alice, fmt.Sprint("alone-", round))
		ctx, stop := context.WithCancel(b.Context())
		var flood sync.WaitGroup
		flood.Go(func() { nameAll(ctx, b, mallory, home.URL, named, round) })
		beside := postsTake(b, carol, alice, fmt.Sprint("beside-", round))
		stop()
		flood.Wait()
		for name, took := range map[string][]time.Duration{"alone": alone, "beside": beside} {
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, name+"-p99-ms")
		}
	}
}

// postsTake sends 500 posts, 20 a second, and returns how long their answers took, the shortest
// first.
func postsTake(b *testing.B, from *peertest.Actor, to *enginetest.User, name string) (took []time.Duration) {
	b.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n := range 500 {
		<-tick.C
		id := fmt.Sprintf("%s/posts/%s-%d", from.ID, name, n)
		create := vocab.Doc{"id": id, "type": "Create", "actor": string(from.ID), "to": []any{to.ID}, "object": vocab.Doc{
			"id": id + "/note", "type": "Note", "attributedTo": string(from.ID), "content": "hello", "to": []any{to.ID}}}
		start := time.Now()
		status := sendSigned(b, from, to.ID+"/inbox", create)
		took = append(took, time.Since(start))
		if status != http.StatusAccepted {
			b.Fatalf("post %d is answered %d", n, status)
		}
	}
	slices.Sort(took)
	return took
}

// nameAll sends 50 activities a second that name all of the users, until ctx ends.
func nameAll(ctx context.Context, b *testing.B, from *peertest.Actor, home string, users []any, round int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var sent sync.WaitGroup
	statuses := map[int]int{}
	var mu sync.Mutex
	for n := 0; ctx.Err() == nil; n++ {
		like := vocab.Doc{"id": fmt.Sprintf("%s/likes/%d-%d", from.ID, round, n), "type": "Like", "actor": string(from.ID), "object": home + "/users/nobody/objects/1", "to": users}
		sent.Go(func() {
			status := sendSigned(b, from, home+"/inbox", like)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
		<-tick.C
	}
	sent.Wait()
	b.Logf("answers to the activities that name all: %v", statuses)
}

// sendSigned sends an activity, and returns the status of the answer.
func sendSigned(b *testing.B, from *peertest.Actor, inbox string, activity vocab.Doc) int {
	resp, err := besieger.Do(peertest.Forgery{URL: inbox, Body: string(activity.JSON()), Key: from.Keys.RSA, Dialect: signature.RFC9421}.Request(b))
	if err != nil {
		b.Errorf("%s: %v", inbox, err)
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}
