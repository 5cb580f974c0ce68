package engine_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// askJSON sends a body as a user's program. The status is 0 when there was no answer.
func askJSON(t *testing.T, u *enginetest.User, method, path, key string, body, into any) (status int) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, u.Home.URL+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+u.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0
	}
	if into != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
	}
	return res.StatusCode
}

// The engine is killed while it accepts a commit. The same request, made again, is accepted as the
// same commit: no epoch is lost, and none is taken twice (conversations.md 3.e, row 15).
func TestACommitIsAcceptedOnceWheneverTheEngineIsKilled(t *testing.T) {
	t.Parallel()
	a := enginetest.Start(t)
	alice := a.CreateUser(t, "alice")
	device := mlstest.NewDevice(alice.ID, time.Now())
	group := mlstest.NewGroup(device)
	var made struct{ ID string }
	if status := askJSON(t, alice, http.MethodPost, "/api/conversations", "make", map[string]any{"groupInfo": group.Info(device)}, &made); status != http.StatusCreated {
		t.Fatalf("the conversation is answered %d", status)
	}
	path := "/api/conversations/" + made.ID
	const rounds = 4
	for round := range rounds {
		commit, next := group.Commit(device, mlstest.Change{})
		group = next
		body := map[string]any{"commit": commit, "groupInfo": next.Info(device)}
		ask := func(into any) int {
			return askJSON(t, alice, http.MethodPost, path+"/commits", strconv.Itoa(round), body, into)
		}
		asked := make(chan int)
		go func() { asked <- ask(nil) }()
		a.Kill()
		first := <-asked
		a.Start(t)
		var accepted struct{ Seq, Epoch int }
		if again := ask(&accepted); again != http.StatusCreated || accepted.Epoch != round+1 || accepted.Seq != round+1 {
			t.Fatalf("commit %d, first answered %d, is answered %d as %+v", round, first, again, accepted)
		}
	}
	var log struct{ Items []struct{ Seq, Epoch int } }
	if status := askJSON(t, alice, http.MethodGet, path+"/log", "", nil, &log); status != http.StatusOK || len(log.Items) != rounds {
		t.Errorf("the log is answered %d with %d entries, want %d", status, len(log.Items), rounds)
	}
	for n, e := range log.Items {
		if e.Seq != n+1 || e.Epoch != n {
			t.Errorf("entry %d is %+v", n, e)
		}
	}
}
