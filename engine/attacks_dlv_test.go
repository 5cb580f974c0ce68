package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnDelivery(t *testing.T) {
	t.Parallel()
	newSiege(t).play(deliveryAttacks)
}

// hostile is a server with one inbox. The inbox answers as the attack needs.
type hostile struct {
	*peertest.Actor
	host, inbox string

	mu        sync.Mutex
	got       []peertest.Posted
	now, most int   // requests that run now, and the most that ran at once
	ramp      []int // for each request, how many ran when it arrived
}

// against starts a server that reads each POST to its inbox and then calls answer().
func (s *siege) against(answer http.HandlerFunc) *hostile {
	s.Helper()
	p := peertest.New(s, "127.0.0.5")
	h := &hostile{Actor: p.Actor("/users/h"), host: host(p.Origin), inbox: p.Origin + "/users/h/inbox"}
	p.Handle("/users/h/inbox", func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sending engine was killed
		}
		h.mu.Lock()
		h.got = append(h.got, peertest.Posted{Request: r, Content: content})
		h.now++
		h.most = max(h.most, h.now)
		h.ramp = append(h.ramp, h.now)
		h.mu.Unlock()
		defer func() {
			h.mu.Lock()
			h.now--
			h.mu.Unlock()
		}()
		answer(w, r)
	})
	return h
}

func (h *hostile) posted() []peertest.Posted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// busy returns how many requests run now, and the most that ran at once.
func (h *hostile) busy() (now, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.most
}

// tell lets alice write to actors. It returns the activity's id.
func (s *siege) tell(to ...*peertest.Actor) string {
	s.Helper()
	ids := make([]any, len(to))
	for n, a := range to {
		ids[n] = string(a.ID)
	}
	create, _ := s.alice.Post(s, map[string]any{"content": "for you", "visibility": "direct", "to": ids})
	return create
}

// tells checks that the engine still serves other servers: a post from alice to carol arrives.
func (s *siege) tells() {
	s.Helper()
	create := s.tell(s.carol)
	enginetest.Eventually(s, "carol is still served", func() bool {
		return slices.Equal(s.alice.Column(s, `SELECT d.status FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE activity_uri = $1`, create), []string{"delivered"})
	})
}

// owed returns the given columns of the deliveries to h. Equal rows are returned once.
func (s *siege) owed(h *hostile, columns string, args ...any) []string {
	s.Helper()
	return s.alice.Column(s, `SELECT DISTINCT concat_ws(' ', `+columns+`) FROM deliveries WHERE host = $1 ORDER BY 1`, append([]any{h.host}, args...)...)
}

// ended waits until each delivery to h has ended or has had the given number of attempts. Then it
// checks the columns of these deliveries.
func (s *siege) ended(h *hostile, attempts int, columns string, want ...string) {
	s.Helper()
	defer func() {
		if s.Failed() {
			s.Logf("owed are %q", s.owed(h, `id, status, attempts, inbox, lease_owner, next_at - now(), last_error`))
		}
	}()
	enginetest.Eventually(s, fmt.Sprint(attempts, " attempts are made"), func() bool {
		return slices.Equal(s.alice.Column(s, `SELECT count(*) FROM deliveries WHERE host = $1 AND status = 'pending' AND attempts < $2`, h.host, attempts), []string{"0"})
	})
	if got := s.owed(h, columns); !slices.Equal(got, want) {
		s.Errorf("of what is owed it is known: %q, want %q", got, want)
	}
}

// multiply adds n copies of a delivery. Each is for its own activity.
func (s *siege) multiply(activity string, n int) {
	s.Helper()
	s.alice.Column(s, `WITH more AS (
			INSERT INTO delivery_jobs (id, activity_uri, type, body, created_at, audience, signer, dedupe_hash)
			SELECT gen_random_uuid(), activity_uri || '/' || n, type, body, now(), audience, signer, sha256(convert_to(activity_uri || n, 'UTF8'))
			FROM delivery_jobs, generate_series(1, $2::int) n WHERE activity_uri = $1 RETURNING id
		) INSERT INTO deliveries (job_id, inbox, host, targets, next_at)
		SELECT more.id, inbox, host, targets, now() FROM more, delivery_jobs j JOIN deliveries d ON d.job_id = j.id WHERE j.activity_uri = $1`, activity, n)
	s.due()
}

// due makes all deliveries of alice's due that no worker has claimed.
func (s *siege) due() {
	s.Helper()
	s.changeDeliveries(`UPDATE deliveries SET next_at = now() WHERE status = 'pending' AND lease_owner IS NULL`)
	if _, err := s.home.SQL(s, "lightweb").ExecContext(s.Context(), `UPDATE users SET next_due = date_trunc('milliseconds', now()) WHERE username = 'alice'`); err != nil {
		s.Fatal(err)
	}
}

// over marks the deliveries that alice still owes as failed.
func (s *siege) over() {
	s.Helper()
	s.changeDeliveries(`UPDATE deliveries SET status = 'failed', lease_owner = NULL WHERE status = 'pending'`)
}

// changeDeliveries changes alice's deliveries while it locks their table. Without the lock the
// engine could change the same rows in another order, and the two would wait for each other.
func (s *siege) changeDeliveries(statement string) {
	s.Helper()
	if _, err := s.home.SQL(s, "lightweb_alice").ExecContext(s.Context(), `LOCK TABLE deliveries IN EXCLUSIVE MODE; `+statement); err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
}

// one checks that every request brought the same delivery to h: the same body and the same
// Idempotency-Key.
func (s *siege) one(h *hostile, times int) {
	s.Helper()
	got := h.posted()
	if len(got) != times {
		s.Fatalf("%d requests, want %d", len(got), times)
	}
	for _, p := range got {
		if !bytes.Equal(p.Content, got[0].Content) || p.Header.Get("Idempotency-Key") != got[0].Header.Get("Idempotency-Key") || p.Header.Get("Idempotency-Key") == "" {
			s.Errorf("the same delivery came as %q %s and as %q %s", p.Header.Get("Idempotency-Key"), p.Content, got[0].Header.Get("Idempotency-Key"), got[0].Content)
		}
	}
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// hangUp sends a text and closes the connection.
func hangUp(w http.ResponseWriter, with string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, with) // the engine may have hung up
	_ = conn.Close()
}

// unless returns a handler. It answers with status while down is set, and with 202 otherwise.
func unless(down *atomic.Bool, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(status)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

var deliveryAttacks = []attack{
	{id: "DLV-01", sends: "200 after nine seconds, for each of a thousand deliveries", happens: "four attempts at once, `delivery.host_concurrency`; other servers are served as before, and memory has its bounds", changes: true, asks: 1, play: func(s *siege) {
		release := make(chan struct{})
		h := s.against(func(w http.ResponseWriter, _ *http.Request) {
			select {
			case <-release:
			case <-time.After(9 * time.Second):
			}
			w.WriteHeader(http.StatusOK)
		})
		s.flood("a thousand deliveries to a server that stalls", func() {
			s.multiply(s.tell(h.Actor), 999)
			enginetest.Eventually(s, "the server is busy", func() bool { now, _ := h.busy(); return now == 4 })
			s.tells()
			s.over()
			close(release)
		})
		if _, most := h.busy(); most != 4 {
			s.Errorf("%d requests at once, want 4", most)
		}
	}},
	{id: "DLV-02", sends: "429 with a Retry-After of 10^9 seconds, negative, long ago or unreadable", happens: "it is heeded up to 24 hours, and else the next attempt is in a minute", changes: true, asks: 1, play: func(s *siege) {
		for after, want := range map[string]string{"1000000000": "pending 1 429 86400 t", "99999999999999999999": "pending 1 429 86400 t", "Fri, 31 Dec 9999 23:59:59 GMT": "pending 1 429 86400 t",
			"-5": "pending 1 429 f", "Sun, 06 Nov 1994 08:49:37 GMT": "pending 1 429 f", "soon": "pending 1 429 f"} {
			h := s.against(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			s.tell(h.Actor)
			s.ended(h, 1, `status, attempts, last_status, retry_after_s, next_at > updated_at + interval '2 minutes'`, want)
			if late := s.owed(h, `next_at <= updated_at + interval '24 hours'`); !slices.Equal(late, []string{"t"}) {
				s.Errorf("%s: the next attempt is later than in a day", after)
			}
			s.one(h, 1)
		}
		s.tells()
		s.over()
	}},
	{id: "DLV-03", sends: "5xx with a body of a gigabyte, or a megabyte of headers; hanging up without an answer; a redirect in a circle", happens: "at most 5 KiB are read and 1 KiB is kept, 64 KiB of headers; one request, and one more where it leads; each is a failure, tried again", changes: true, asks: 1, play: func(s *siege) {
		var sent atomic.Int64
		for _, tt := range []struct {
			what     string
			requests int
			answer   http.HandlerFunc
			want     string
		}{
			{"a body of a gigabyte", 1, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				for part := make([]byte, 64<<10); sent.Load() < 1<<30; sent.Add(int64(len(part))) {
					if _, err := w.Write(part); err != nil {
						return
					}
				}
			}, "pending 1 500 1024 true"},
			{"a megabyte of headers", 1, func(w http.ResponseWriter, _ *http.Request) {
				hangUp(w, "HTTP/1.1 500 Oops\r\n"+strings.Repeat("X-Padding: "+strings.Repeat("x", 1000)+"\r\n", 1000)+"\r\n")
			}, "pending 1 true"},
			{"nothing", 1, func(w http.ResponseWriter, _ *http.Request) { hangUp(w, "") }, "pending 1 true"},
			{"a circle", 2, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
			}, "pending 1 308 true"},
		} {
			h := s.against(tt.answer)
			s.flood(tt.what, func() {
				s.tell(h.Actor)
				s.ended(h, 1, `status, attempts, last_status, octet_length(last_answer), CASE WHEN bytes_in <= 5120 THEN 'true' END`, tt.want)
			})
			s.one(h, tt.requests)
		}
		if n := sent.Load(); n == 0 || n > 64<<20 {
			s.Errorf("%d bytes were sent before the engine hung up", n)
		}
		s.tells()
		s.over()
	}},
	{id: "DLV-04", sends: "kill -9 while sending", happens: "it is sent again after the start, the same bytes under the same id and `Idempotency-Key`, and nothing is lost", changes: true, play: func(s *siege) {
		stall := make(chan struct{})
		h := s.against(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-stall:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusAccepted)
		})
		s.tell(h.Actor)
		enginetest.Eventually(s, "it is being sent", func() bool { return len(h.posted()) == 1 })
		s.home.Kill()
		close(stall)
		s.alice.Column(s, `UPDATE deliveries SET next_at = now() + interval '1 hour' WHERE status = 'pending'`) // keeps the lease from ending by itself
		s.home.Start(s)
		s.ended(h, 9, `status, attempts, lease_owner`, "delivered 1")
		s.one(h, 2)
	}},
	{id: "DLV-05", sends: "a server that comes back with hundreds of deliveries waiting", happens: "one attempt finds it back, then one more at once with every eight that get through; while it was away few attempts were made, and none was wasted on the others", changes: true, play: func(s *siege) {
		var down atomic.Bool
		down.Store(true)
		h := s.against(unless(&down, http.StatusBadGateway))
		s.multiply(s.tell(h.Actor), 399)
		enginetest.Eventually(s, "the server is left alone", func() bool {
			return slices.Equal(s.owed(h, `lease_owner`), []string{""}) && strings.Contains(s.home.Run(s, "host", "show", h.host).Stdout, "open")
		})
		tried := len(h.posted())
		if tried < 5 || tried > 5+4 {
			s.Errorf("%d attempts until it was left alone, want 5 and those under way", tried)
		}
		down.Store(false)
		s.change("host", "probe", h.host)
		s.ended(h, 9, `status`, "delivered")
		for n, atOnce := range h.ramp[tried:] {
			if most := min(4, 1+n/8); atOnce > most {
				s.Errorf("request %d after it was back was one of %d at once, want %d at most", n+1, atOnce, most)
				break
			}
		}
		if n := len(h.posted()); n != tried+400 {
			s.Errorf("%d requests, want %d that failed and one for each delivery", n, tried)
		}
	}},
	{id: "DLV-06", sends: "failures on purpose, so that a Delete never leaves", happens: "it waits without spending attempts, 30 days where others have 8, and leaves when the server is back", changes: true, asks: 1, play: func(s *siege) {
		var down atomic.Bool
		h := s.against(unless(&down, http.StatusInternalServerError))
		_, note := s.alice.Post(s, map[string]any{"content": "for you", "visibility": "direct", "to": []any{string(h.ID)}})
		s.settle()
		down.Store(true)
		s.multiply(s.tell(h.Actor), 5)
		enginetest.Eventually(s, "the server is left alone", func() bool {
			return slices.Equal(s.owed(h, `lease_owner`), []string{""}) && strings.Contains(s.home.Run(s, "host", "show", h.host).Stdout, "open")
		})
		remove := s.alice.Do(s, "DeleteObject", map[string]any{"objectId": note}).ActivityID
		s.tells()
		if got := s.alice.Column(s, `SELECT status || ' ' || attempts FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE activity_uri = $1`, remove); !slices.Equal(got, []string{"pending 0"}) {
			s.Errorf("the Delete is %q, want it pending without an attempt", got)
		}
		down.Store(false)
		s.change("host", "resume", h.host)
		s.ended(h, 9, `status`, "delivered")
		if last := h.posted(); !slices.ContainsFunc(last, func(p peertest.Posted) bool { return bytes.Contains(p.Content, []byte(remove)) }) {
			s.Error("the Delete never came")
		}
	}},
	{id: "DLV-07", sends: "a held queue that drops what waits too long", happens: "what is held lies in the user's database, through a crash, and all of it leaves once", changes: true, play: func(s *siege) {
		h := s.against(answers(http.StatusAccepted))
		s.change("host", "pause", h.host)
		enginetest.Eventually(s, "the server is held back", func() bool { return strings.Contains(s.home.Run(s, "host", "show", h.host).Stdout, "paused") })
		// the engine needs a second to notice the pause; the kill comes first
		s.home.Kill()
		s.home.Start(s)
		s.multiply(s.tell(h.Actor), 19)
		s.tells()
		s.home.Kill()
		s.home.Start(s)
		s.tells()
		if got := s.owed(h, `status, attempts`); !slices.Equal(got, []string{"pending 0"}) || len(h.posted()) != 0 {
			s.Errorf("while it is held back: %q after %d requests, want nothing tried", got, len(h.posted()))
		}
		s.change("host", "resume", h.host)
		s.ended(h, 9, `status, attempts`, "delivered 1")
		if n := len(h.posted()); n != 20 {
			s.Errorf("%d requests for 20 deliveries", n)
		}
	}, asks: 2},
	{id: "DLV-08", sends: "an actor that moves its inbox between queue and sending", happens: "after three attempts that failed it is asked again where the inbox is, and the activity goes there", changes: true, play: func(s *siege) {
		h := s.against(answers(http.StatusInternalServerError))
		s.tell(h.Actor)
		s.ended(h, 1, `status, attempts, inbox`, "pending 1 "+h.inbox)
		h.Doc["inbox"] = string(h.ID) + "/new"
		h.Show()
		s.alice.Column(s, `UPDATE deliveries SET attempts = 3 WHERE host = $1`, h.host)
		s.due()
		s.ended(h, 9, `status, inbox`, "delivered "+string(h.ID)+"/new")
		s.one(h, 1)
	}},
	{id: "DLV-09", sends: "a clock that steps by an hour", happens: "what was stored by another clock leaves with a date of its own attempt, and no wait is off by more than the step", changes: true, play: func(s *siege) {
		var down atomic.Bool
		down.Store(true)
		h := s.against(unless(&down, http.StatusInternalServerError))
		s.tell(h.Actor)
		s.ended(h, 1, `status, attempts`, "pending 1")
		s.alice.Column(s, `UPDATE deliveries SET created_at = created_at + interval '1 hour', updated_at = updated_at + interval '1 hour' WHERE host = $1`, h.host)
		down.Store(false)
		s.due()
		s.ended(h, 9, `status, attempts`, "delivered 2")
		s.one(h, 2)
		for _, p := range h.posted() {
			if made, err := signedAt(p.Header); err != nil || time.Since(made).Abs() > 10*time.Minute {
				s.Errorf("a request was signed at %v (%v), want when it was made", made, err)
			}
		}
	}},
	{id: "DLV-10", sends: "a user who is deleted with posts waiting", happens: "what waits is sent no more; the Delete is, signed with the user's keys, which are shown until every server has it: then they, the database and all else are gone, and the actor is 410", changes: true, asks: 1, play: func(s *siege) {
		var down atomic.Bool
		down.Store(true)
		h := s.against(unless(&down, http.StatusInternalServerError))
		leaver := s.home.CreateUser(s, "leaver")
		leaver.Post(s, map[string]any{"content": "never heard", "visibility": "direct", "to": []any{string(h.ID)}})
		enginetest.Eventually(s, "the post waits", func() bool { return len(h.posted()) == 1 })
		if got := s.home.Run(s, "user", "delete", "leaver", "--yes"); got.Code != 0 {
			s.Fatalf("user delete ended with %d: %s", got.Code, got.Stderr)
		}
		enginetest.Eventually(s, "the Delete waits", func() bool { return len(h.posted()) == 2 })
		if keys := enginetest.Fetch(s, leaver.ID); keys.Status != http.StatusOK || !strings.Contains(string(keys.Body), "publicKeyPem") {
			s.Errorf("while the Delete waits the actor is answered %d %s, want its keys", keys.Status, keys.Body)
		}
		down.Store(false)
		leaver.Column(s, `UPDATE deliveries SET next_at = now() WHERE status = 'pending' AND lease_owner IS NULL`)
		if _, err := s.home.SQL(s, "lightweb").ExecContext(s.Context(), `UPDATE users SET next_due = date_trunc('milliseconds', now()) WHERE username = 'leaver'`); err != nil {
			s.Fatal(err)
		}
		expectDeleted(s.T, s.home, leaver)
		for _, p := range h.posted()[1:] {
			d, err := vocab.ParseActivity(p.Content)
			if err != nil || d.Type != vocab.Delete || string(d.Object.ID) != leaver.ID || !strings.Contains(p.Header.Get("Signature"), leaver.ID) { // signed in draft-cavage, as every Delete to an unknown host is
				s.Errorf("after the deletion %s was sent, signed as %s; want the Delete of the user, by its key", p.Content, p.Header.Get("Signature"))
			}
		}
	}},
	{id: "DLV-11", sends: "a delivery that cannot be made, on which the sender could choke", happens: "it fails alone and is told of by an event; a panic ends one delivery, too. The others leave", changes: true, play: func(s *siege) {
		h := s.against(answers(http.StatusAccepted))
		s.change("host", "pause", h.host)
		s.home.Kill()
		s.home.Start(s)
		s.multiply(s.tell(h.Actor), 4)
		s.alice.Column(s, `UPDATE deliveries SET inbox = 'http://[::poison/%zz' WHERE host = $1 AND id IN (SELECT max(id) FROM deliveries WHERE host = $1)`, h.host)
		s.change("host", "resume", h.host)
		s.ended(h, 9, `status, inbox`, "delivered "+h.inbox, "failed http://[::poison/%zz")
		if n := s.alice.Column(s, `SELECT count(*) FROM event_outbox WHERE type = 'delivery.failed' AND payload->>'inbox' = 'http://[::poison/%zz'`); !slices.Equal(n, []string{"1"}) {
			s.Errorf("alice was told %s times", n)
		}
		if n := len(h.posted()); n != 4 {
			s.Errorf("%d requests, want one for each of the others", n)
		}
	}},
	{id: "DLV-12", sends: "two workers at one delivery", happens: "one holds the lease, and nobody else tries; who lost it changes nothing; when it ends the next one tries", changes: true, play: func(s *siege) {
		stall := make(chan struct{})
		h := s.against(func(w http.ResponseWriter, _ *http.Request) {
			<-stall
			w.WriteHeader(http.StatusAccepted)
		})
		s.tell(h.Actor)
		enginetest.Eventually(s, "it is being sent", func() bool { return len(h.posted()) == 1 })
		s.alice.Column(s, `UPDATE deliveries SET lease_owner = 'other', next_at = now() + interval '1 hour' WHERE status = 'pending' AND host = $1`, h.host)
		close(stall)
		s.tells()
		if got := s.owed(h, `status, attempts, lease_owner`); !slices.Equal(got, []string{"pending 0 other"}) || len(h.posted()) != 1 {
			s.Errorf("with the lease of another process: %q after %d requests", got, len(h.posted()))
		}
		s.alice.Column(s, `UPDATE deliveries SET next_at = now() WHERE lease_owner = 'other'`)
		s.due()
		s.ended(h, 9, `status, attempts, lease_owner`, "delivered 1")
		s.one(h, 2)
		if _, most := h.busy(); most != 1 {
			s.Errorf("%d requests at once", most)
		}
	}, asks: 1},
	{id: "DLV-13", sends: "one shared delivery that shows who else got it", happens: "each gets the same bytes in the own inbox, with those in it that the author named, and no `bto` or `bcc`", changes: true, asks: 1, play: func(s *siege) {
		h, other := s.against(answers(http.StatusAccepted)), s.against(answers(http.StatusAccepted))
		create, _ := s.alice.Post(s, map[string]any{"content": "for you", "visibility": "direct", "to": []any{string(h.ID), string(other.ID)}})
		hidden := s.alice.Try(s, "CreateNote", map[string]any{"content": "for you", "visibility": "direct", "to": []any{string(h.ID)}, "bcc": []any{string(other.ID)}, "bto": []any{string(other.ID)}})
		if hidden.Status != http.StatusUnprocessableEntity {
			s.Errorf("hidden recipients were answered %d, want 422", hidden.Status)
		}
		s.ended(h, 9, `status, inbox`, "delivered "+h.inbox)
		s.ended(other, 9, `status, inbox`, "delivered "+other.inbox)
		s.one(h, 1)
		s.one(other, 1)
		body := h.posted()[0].Content
		if !bytes.Equal(body, other.posted()[0].Content) || !bytes.Contains(body, []byte(create)) {
			s.Errorf("posted\n%s\nand\n%s", body, other.posted()[0].Content)
		}
		if bytes.Contains(body, []byte(`"bcc"`)) || bytes.Contains(body, []byte(`"bto"`)) || bytes.Contains(body, []byte(s.carol.ID)) {
			s.Errorf("posted %s", body)
		}
	}},
	{id: "DLV-14", sends: "401 to every attempt, to double the traffic", happens: "two requests an attempt, one for each dialect of signatures, and three attempts; then it has failed", changes: true, play: func(s *siege) {
		h := s.against(answers(http.StatusUnauthorized))
		s.tell(h.Actor)
		for n := 1; n <= 3; n++ {
			want := fmt.Sprint("pending ", n, " 401")
			if n == 3 {
				want = "failed 3 401"
			}
			s.ended(h, n, `status, attempts, last_status`, want)
			s.one(h, 2*n)
			s.due()
		}
		dialects := 0
		for _, p := range h.posted() {
			if p.Header.Get("Signature-Input") == "" {
				dialects++
			}
		}
		if dialects != 3 {
			s.Errorf("%d of 6 requests were signed as draft-cavage says, want every second", dialects)
		}
	}},
}

// signedAt returns the time at which a request was signed. RFC 9421 has it in the parameter
// created, draft-cavage in the Date field.
func signedAt(h http.Header) (time.Time, error) {
	_, rest, is := strings.Cut(h.Get("Signature-Input"), ";created=")
	if !is {
		return http.ParseTime(h.Get("Date"))
	}
	seconds, _, _ := strings.Cut(rest, ";")
	made, err := strconv.ParseInt(seconds, 10, 64)
	return time.Unix(made, 0), err
}
