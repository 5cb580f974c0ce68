package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// owe adds one delivery of an activity to an inbox on each host. It returns the job.
func (f *fixture) owe(u vocab.Username, n int, hosts ...string) user.Job {
	f.Helper()
	j := user.Job{ID: uuid.Must(uuid.NewV7()), Activity: vocab.ID(fmt.Sprint("https://here.example/activities/", n)), Object: vocab.ID(fmt.Sprint("https://here.example/objects/", n)),
		Type: "Create", Body: []byte(`{}`)}
	inboxes := make([]user.Inbox, len(hosts))
	for i, host := range hosts {
		inboxes[i] = user.Inbox{URL: vocab.ID("https://" + host + "/inbox"), Host: host, Targets: []vocab.ID{vocab.ID("https://" + host + "/users/bob")}}
	}
	f.write(u, func(ctx context.Context, tx *user.Tx) error { return tx.Deliveries.Enqueue(ctx, j, inboxes, start) })
	return j
}

// tried attempts all deliveries of u. The parameter ends has the outcome for each host.
func (f *fixture) tried(u vocab.Username, ends map[string]user.Outcome) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		rows, err := tx.Deliveries.Claim(ctx, "me", start, time.Minute, user.ClaimBounds{Most: 100, Forwarded: 100})
		var outcomes []user.Outcome
		for _, d := range rows {
			if o, ends := ends[d.Host]; ends {
				o.Delivery, o.Spent = d.ID, true
				outcomes = append(outcomes, o)
			}
		}
		if err != nil {
			return err
		}
		_, err = tx.Deliveries.Finish(ctx, "me", outcomes, start)
		return err
	})
}

type jobDoc struct {
	JobID, ActivityID, ObjectID, Type, Status string
	Counts                                    user.JobCounts
	Deliveries                                []struct {
		InboxURL, Host, Status, ResponseBody, Error, IdempotencyKey string
		Targets                                                     []string
		Attempts, ResponseStatus                                    int
		NextAttemptAt                                               time.Time
		BytesSent                                                   int64
	}
	Next string
}

func TestDeliveriesAreShownToWhoseTheyAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var jobs []user.Job
	for n := range 5 {
		jobs = append(jobs, f.owe(f.alice, n, "up.example", "down.example", fmt.Sprintf("%d.example", n)))
	}
	next := start.Add(time.Hour).UTC()
	f.tried(f.alice, map[string]user.Outcome{"up.example": {Status: user.DeliveryDelivered, BytesOut: 10},
		"down.example": {Status: user.DeliveryPending, NextAt: next, HTTPStatus: 503, Answer: []byte("\x1b]0;<b>\xff"), Error: "busy"},
		"0.example":    {Status: user.DeliverySkipped, Error: "gone"}})
	token, bobs := bearerToken(f.token(f.alice, "read")), bearerToken(f.token(f.bob, "read"))

	var got []string
	for next := "/api/deliveries?limit=2"; next != ""; {
		r := f.get(next, token).want(t, 200)
		var page struct {
			Items []jobDoc
			Next  string
		}
		r.decode(t, &page)
		for _, j := range page.Items {
			got = append(got, j.JobID)
		}
		next = strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Link"), "<"), `>; rel="next"`)
		if (page.Next == "") != (next == "") || !strings.Contains(next, page.Next) || r.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("Link %q, want the cursor %q", next, page.Next)
		}
	}
	var want []string
	for _, j := range slices.Backward(jobs) {
		want = append(want, j.ID.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages hold %q, want %q", got, want)
	}
	for query, n := range map[string]int{"": 5, "?status=partial": 1, "?status=delivering": 4, "?status=skipped": 1, "?status=error": 0, "?host=3.example": 1, "?host=nowhere.example": 0,
		"?host=down.example&limit=100": 5, "?activity=" + url.QueryEscape(string(jobs[2].Activity)): 1, "?activity=" + url.QueryEscape(string(jobs[2].Object)): 1} {
		var page struct{ Items []jobDoc }
		if f.get("/api/deliveries"+query, token).want(t, 200).decode(t, &page); len(page.Items) != n {
			t.Errorf("%s: %d jobs, want %d", query, len(page.Items), n)
		}
	}

	path := "/api/deliveries/" + jobs[0].ID.String()
	var j jobDoc
	f.get(path, token).want(t, 200).decode(t, &j)
	if j.Status != "partial" || j.Counts != (user.JobCounts{Total: 3, Pending: 1, Delivered: 1, Skipped: 1}) || j.ActivityID != string(jobs[0].Activity) || j.Next != "" || len(j.Deliveries) != 3 {
		t.Fatalf("job %+v", j)
	}
	if d := j.Deliveries[1]; d.InboxURL != "https://down.example/inbox" || d.Status != "pending" || d.Attempts != 1 || d.ResponseStatus != 503 || !d.NextAttemptAt.Equal(next) ||
		d.Error != "busy" || d.ResponseBody != "\ufffd]0;<b>\ufffd" || len(d.IdempotencyKey) != 32 || strings.Contains(d.IdempotencyKey, j.JobID) || !slices.Equal(d.Targets, []string{"https://down.example/users/bob"}) {
		t.Errorf("delivery %+v", d)
	}
	var first, second jobDoc
	f.get(path+"?limit=2", token).want(t, 200).decode(t, &first)
	f.get(path+"?limit=2&cursor="+first.Next, token).want(t, 200).decode(t, &second)
	if len(first.Deliveries) != 2 || len(second.Deliveries) != 1 || second.Next != "" || second.Deliveries[0].Host != "0.example" {
		t.Errorf("pages of a job: %+v, then %+v", first, second)
	}
	f.get("/api/deliveries", token, header("If-None-Match", f.get("/api/deliveries", token).Header.Get("ETag"))).want(t, 304)

	strip := func(r response) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(r.body, []byte(r.Header.Get("X-Request-Id")), nil), []byte(jobs[0].ID.String()), []byte("ID"))
	}
	nobodys := "ffffffff-0000-7000-8000-000000000000"
	theirs, nothing := f.get(path, bobs).want(t, 404), f.get("/api/deliveries/"+nobodys, bobs).want(t, 404)
	if a, b := strip(theirs), bytes.ReplaceAll(strip(nothing), []byte(nobodys), []byte("ID")); !bytes.Equal(a, b) {
		t.Errorf("TEN-08: a job of somebody else's is answered\n%s, and none\n%s", a, b)
	}
	cursor := f.get("/api/deliveries?limit=2", token).doc(t).Text("next")
	for path, token := range map[string]asking{"/api/deliveries?cursor=" + cursor: bobs, "/api/deliveries/" + jobs[0].ID.String() + "?cursor=" + cursor: token,
		"/api/deliveries/" + jobs[1].ID.String() + "?cursor=" + first.Next: token, "/api/feed?cursor=" + cursor: token} {
		if r := f.get(path, token).want(t, 400); r.doc(t).Text("error") != "bad_cursor" {
			t.Errorf("TEN-08: a cursor from elsewhere at %s: %s", path, r.body)
		}
	}
	f.get(path, bearerToken(f.token(f.alice, "llm"))).want(t, 403)
	f.get(path, bearerToken(f.token(f.alice, "write"))).want(t, 403)
	f.get(path).want(t, 401)
	f.get("/api/deliveries").want(t, 401)
	f.get("/api/deliveries/x", token).want(t, 404)
	f.get("/api/deliveries/"+strings.ToUpper(nobodys), token).want(t, 404)
	for _, bad := range []string{"?limit=0", "?limit=101", "?limit=x", "?status=done", "?status=", "?cursor=x", "?page=2", "?host=a&host=b", "?activity=x", "?activity=", "/" + jobs[0].ID.String() + "?limit=1001",
		"/" + jobs[0].ID.String() + "?status=failed"} {
		if r := f.get("/api/deliveries"+bad, token); r.StatusCode != 400 {
			t.Errorf("%s: %d, want 400: %s", bad, r.StatusCode, r.body)
		}
	}
}

// A client may write a host in the same forms as an operator.
func TestDeliveriesAreFoundByAHostHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.owe(f.alice, 1, "down.example", "xn--bcher-kva.example:8443")
	f.owe(f.alice, 2, "up.example")
	token := bearerToken(f.token(f.alice, "read"))
	for host, n := range map[string]int{"Down.example": 1, "down.example:443": 1, "B\u00fccher.example:8443": 1, "xn--bcher-kva.example:8443": 1, "xn--bcher-kva.example": 0, "": 0} {
		var page struct{ Items []jobDoc }
		if f.get("/api/deliveries?host="+url.QueryEscape(host), token).want(t, 200).decode(t, &page); len(page.Items) != n {
			t.Errorf("host=%s: %d jobs, want %d", host, len(page.Items), n)
		}
	}
	for _, host := range []string{"https://down.example", "down.example/inbox", "bob@down.example", "down example"} {
		if r := f.get("/api/deliveries?host="+url.QueryEscape(host), token).want(t, 400); r.doc(t).Text("error") != "bad_query" {
			t.Errorf("host=%s: %s", host, r.body)
		}
	}
}
