package bench_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/bench"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// measure runs a small benchmark by the command line. It returns the benchmark's report and the
// result of the command. The command makes its databases where the tests have theirs, which is in
// memory if there is room.
func measure(t *testing.T, args ...string) (bench.Report, enginetest.Ran) {
	t.Helper()
	dir := enginetest.Dir(t)
	ran := enginetest.MakeIn(t, dir, "TMPDIR="+dir).Run(t, append([]string{"bench"}, args...)...)
	if ran.Code == 69 {
		enginetest.Skip(t, "no PostgreSQL to test with:\n"+ran.Stderr)
	}
	if ran.Code != 0 {
		t.Fatalf("bench %v ended with %d:\n%s", args, ran.Code, ran.Stderr)
	}
	var r bench.Report
	if slices.Contains(args, "--json") {
		ran.Decode(t, &r)
	}
	return r, ran
}

// counts fails the test unless the last measurement has the counts in want.
func counts(t *testing.T, r bench.Report, want map[string]int) {
	t.Helper()
	got := r.Measured[len(r.Measured)-1].Counts
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d %s, want %d: %v", r.Bench, got[name], name, n, got)
		}
	}
}

// figures fails the test unless all figures with these names are in the report and positive.
func figures(t *testing.T, r bench.Report, names ...string) {
	t.Helper()
	for _, m := range r.Measured {
		if m.Limits == "" || m.Seconds <= 0 {
			t.Errorf("%s: %q took %f s and was limited by %q", r.Bench, m.Name, m.Seconds, m.Limits)
		}
		if runtime.GOOS == "linux" && len(m.CPU) != 3 {
			t.Errorf("%s: processor time is known of %v, want engine, PostgreSQL and client", r.Bench, m.CPU)
		}
	}
	last := r.Measured[len(r.Measured)-1]
	for _, name := range names {
		if f := last.Figure(name); f.Value <= 0 || f.Unit == "" {
			t.Errorf("%s: figure %q is %v", r.Bench, name, f)
		}
	}
}

func TestInboxStoresWhatItSends(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(enginetest.Dir(t), "cpu.pprof")
	r, _ := measure(t, "inbox", "--users", "3", "--activities", "50", "--clients", "4", "--cpuprofile", profile, "--json")
	counts(t, r, map[string]int{"sent": 50, "answered_202": 50, "errors": 0, "stored": 50, "shown": 50})
	figures(t, r, "stored and handled", "202 p50", "202 p95", "202 p99", "202 max")
	if r.Machine.Cores == 0 || r.Database.Version == "" || !r.Database.Embedded || r.Database.Settings["fsync"] != "on" || r.Database.Settings["synchronous_commit"] != "on" {
		t.Errorf("measured on %+v, %+v, want everything that matters, and commits that wait for the disk", r.Machine, r.Database)
	}
	if st, err := os.Stat(profile); err != nil || st.Size() == 0 {
		t.Errorf("the profile is %v (%v)", st, err)
	}
}

func TestInboxKeepsToARateOnAFilledDatabase(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "inbox", "--activities", "20", "--rate", "40", "--stored", "300", "--key", "ed25519", "--json")
	counts(t, r, map[string]int{"sent": 20, "answered_202": 20, "errors": 0, "stored": 20, "shown": 20})
	if took := r.Measured[0].Seconds; took < 19.0/40 {
		t.Errorf("20 activities at 40 a second took %f s", took)
	}
}

func TestFanoutReachesEverybody(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "fanout", "--users", "3", "--posts", "2", "--connections", "8,4", "--json")
	if len(r.Measured) != 3 {
		t.Fatalf("%d measurements, want the users and two numbers of connections", len(r.Measured))
	}
	for _, m := range r.Measured[1:] {
		if m.Counts["sent"] != 2 || m.Counts["stored"] != 6 || m.Counts["shown"] != 6 {
			t.Errorf("%s: %v, want 2 posts and 6 of them stored", m.Name, m.Counts)
		}
	}
	figures(t, r, "202 p50", "202 p95", "first user has it p50", "all users have it p50", "written")
}

func TestFanoutRestartsTheEngineToBeCold(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "fanout", "--users", "2", "--posts", "2", "--cold", "--json")
	counts(t, r, map[string]int{"sent": 2, "stored": 4, "shown": 4})
}

func TestDispatchReachesEveryInboxOnce(t *testing.T) {
	t.Parallel()
	elsewhere(t)
	for _, c := range []struct {
		name    string
		args    []string
		inboxes int
	}{
		{"shared", []string{"--shared"}, 3},
		{"personal", []string{"--personal", "--key", "ed25519"}, 6},
		{"stalling", []string{"--stall", "1"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, _ := measure(t, append([]string{"dispatch", "--followers", "6", "--hosts", "3", "--posts", "2", "--json"}, c.args...)...)
			counts(t, r, map[string]int{"posts": 2, "inboxes": c.inboxes, "delivered": 2 * c.inboxes, "repeated": 0})
			figures(t, r, "first byte at a peer p50", "all inboxes reached p50", "delivered")
		})
	}
}

func TestDeliverGoesThroughGoodTimesAndBadOnes(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "deliver", "--followers", "6", "--hosts", "3", "--posts", "2", "--backlog", "4", "--stall", "1", "--owed", "1500", "--back", "100", "--json")
	want := []map[string]int{
		{"posts": 2, "delivered": 2 * 3, "repeated": 0},
		{"posts": 2, "delivered": 2 * 6, "repeated": 0},
		{"posts": 4, "delivered": 4 * 6, "repeated": 0},
		{"posts": 4, "delivered": 4 * 6, "repeated": 0},
		{"posts": 2, "delivered": 2 * 2, "repeated": 0},
		{"posts": 2, "delivered": 2 * (2 + 2), "repeated": 0},                                         // the host that the benchmark stops later has two personal inboxes
		{"posts": 2, "delivered": 2 * 2, "repeated": 0, "owed": 1500 + 3*2, "attempts_while_dead": 2}, // one attempt for each time that the engine finds the host dead
		{"delivered": 100, "repeated": 0, "owed": 1500 + 3*2},
	}
	if len(r.Measured) != len(want) {
		t.Fatalf("%d measurements, want %d", len(r.Measured), len(want))
	}
	for n, m := range r.Measured {
		for name, count := range want[n] {
			if m.Counts[name] != count {
				t.Errorf("%s: %d %s, want %d: %v", m.Name, m.Counts[name], name, count, m.Counts)
			}
		}
	}
	figures(t, r, "delivered", "first delivery since the operator said so")
	for _, name := range []string{"delivered", "one signature", "CPU of engine and PostgreSQL"} {
		if f := r.Measured[2].Figure(name); runtime.GOOS == "linux" && f.Value <= 0 {
			t.Errorf("figure %q of a backlog is %v", name, f)
		}
	}
}

func TestDeliverFindsParkedDeliveries(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "deliver", "--parts", "dead", "--parked", "--followers", "6", "--hosts", "3", "--posts", "2", "--owed", "60", "--back", "60", "--json")
	counts(t, r, map[string]int{"delivered": 60, "repeated": 0, "owed": 60 + 3*2})
	if n := r.Measured[1].Counts["attempts_while_dead"]; n != 2 {
		t.Errorf("an inactive host was tried %d times, want one for each time it was to be found out", n)
	}
}

// elsewhere skips the test if loopback has only one address.
func elsewhere(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.1.1:0")
	if err != nil {
		t.Skip("this machine has no such address: ", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFeedReadsWholePages(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "feed", "--items", "30", "--clients", "2", "--duration", "300ms", "--json")
	m := r.Measured[0]
	if m.Counts["pages"] == 0 || m.Counts["answered_200"] != m.Counts["pages"] || m.Counts["errors"] != 0 || m.Name != "pages of 20" {
		t.Errorf("%s: %v, want nothing but pages of 20", m.Name, m.Counts)
	}
	figures(t, r, "pages", "page p50")
}

// For every post, the sockets benchmark counts one push to each of a user's sockets.
func TestSocketsHearOfEveryPost(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "sockets", "--sockets", "6", "--users", "3", "--posts", "7", "--json")
	counts(t, r, map[string]int{"posts": 7, "pushes": 14})
	figures(t, r, "push after the 202 p50", "202 p50")
}

// A socket that is sent an event twice, or the event of another activity, ends the benchmark. It
// does not count as a push.
func TestOnlyTheEventOfAPostIsAPush(t *testing.T) {
	t.Parallel()
	event := func(id, activity string) []byte {
		text := fmt.Sprintf(`{"id":%q,"type":"create.received","payload":{"activityUri":%q}}`, id, activity)
		return append([]byte{0x81, byte(len(text))}, text...) // RFC 6455 §5.2: a text of less than 126 bytes
	}
	first, second := event("1-1", "https://a.example/1"), event("1-2", "https://a.example/2")
	for name, tt := range map[string]struct {
		sent []byte
		want bool
	}{
		"each once":         {slices.Concat(first, second), true},
		"the first twice":   {slices.Concat(first, first, second), false},
		"the first missing": {second, false},
		"no event":          {slices.Concat(event("", "https://a.example/1"), second), false},
	} {
		socket := bench.NewSocket(bytes.NewReader(tt.sent))
		err := errors.Join(socket.AwaitPush(t.Context(), "https://a.example/1"), socket.AwaitPush(t.Context(), "https://a.example/2"))
		if isRight := err == nil; isRight != tt.want {
			t.Errorf("%s: %v, want it counted: %t", name, err, tt.want)
		}
	}
}

func TestEventsThatWaitedForRedisAreEmitted(t *testing.T) {
	t.Parallel()
	redistest.Program(t)
	r, _ := measure(t, "events", "--users", "3", "--events", "7", "--json")
	counts(t, r, map[string]int{"events": 21})
	figures(t, r, "every stream flows after", "all events emitted after", "emitted")
}

func TestConversationsAcceptEveryCommitAndMessage(t *testing.T) {
	t.Parallel()
	r, _ := measure(t, "conversations", "--known", "40", "--busy", "5", "--conversations", "3", "--hosts", "2", "--commits", "7", "--messages", "11", "--clients", "4", "--json")
	if len(r.Measured) != 5 {
		t.Fatalf("%d measurements, want known conversations, one, many, those of other hosts, and messages", len(r.Measured))
	}
	known := r.Measured[0]
	// Five conversations take less memory than the rest of the test frees meanwhile, so the figure
	// of memory can be negative.
	if known.Counts["messages"] != 5 || known.Figure("memory of a live one without work").Unit == "" || known.Figure("reading an epoch").Value <= 0 {
		t.Errorf("of known conversations it reports %+v", known)
	}
	if f := known.Figure("goroutines of all"); f.Unit == "" || f.Value >= 5 {
		t.Errorf("5 conversations have %+v, want none of each", f)
	}
	for n, commits := range []int{7, 6, 6} {
		if c := r.Measured[1+n].Counts; c["commits"] != commits || c["answered_201"] != commits || c["errors"] != 0 || r.Measured[1+n].Figure("commits").Value <= 0 {
			t.Errorf("%s: %v, want %d commits", r.Measured[1+n].Name, r.Measured[1+n], commits)
		}
	}
	counts(t, r, map[string]int{"messages": 11, "answered_201": 11, "errors": 0})
	figures(t, r, "messages", "message p50")
}

// A benchmark that uses an existing server leaves no database on it. Without --json, the benchmark
// prints its report as lines of text.
func TestAServerIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	conn := dbtest.URL(t)
	at := url.Values{"dbname": {"postgres"}} // for the search for leftovers; the engine uses its own databases
	for _, word := range strings.Fields(conn) {
		if name, value, ok := strings.Cut(word, "="); ok {
			at.Set(name, strings.Trim(value, "'"))
		}
	}
	address := conn
	if at.Has("host") {
		address = "postgres://" + at.Get("user") + "@/?" + at.Encode()
	}
	_, ran := measure(t, "inbox", "--activities", "5", "--database-url", address)
	for _, line := range []string{"\tstored and handled\t", "\t202 p99\t", "limited by", "fsync"} {
		if !strings.Contains(ran.Stdout, line) {
			t.Errorf("the report lacks %q:\n%s", line, ran.Stdout)
		}
	}
	server, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var left int
	if err := server.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_database WHERE datname LIKE 'lightweb-bench-%'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases were left behind (%v)", left, err)
	}
}

func TestOnlyLoopbackIsPutUnderLoad(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "example.org:80", "localhost:80", "0.0.0.0:80", "127.0.0.1", "", "[::ffff:192.0.2.1]:80"} {
		if err := bench.Dial(t.Context(), address); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("Dial(%q) = %v, want a refusal", address, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := bench.Dial(t.Context(), l.Addr().String()); err != nil {
		t.Errorf("loopback: %v", err)
	}
}

func TestSizesAreBounded(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	for _, line := range []string{"inbox --users 0", "inbox --activities 1000000000", "inbox --rate -1", "inbox --key dsa", "fanout --users 100000", "fanout --connections 3",
		"dispatch --hosts 251 --followers 251", "dispatch --followers 2 --hosts 3", "dispatch --hosts 2 --stall 2", "dispatch --shared --personal", "deliver --parts all", "deliver --hosts 10 --stall 10", "deliver --owed 2 --back 3", "feed --duration 1h", "sockets --sockets 11 --users 1", "events --events 9001", "feed --items 0", "conversations --conversations 9 --commits 8", "conversations --clients 257", "conversations --known 9 --busy 10", "nothing", "engine"} {
		if ran := i.Run(t, append([]string{"bench"}, strings.Fields(line)...)...); ran.Code != 64 || ran.Stdout != "" {
			t.Errorf("bench %s ended with %d and wrote %q, want 64 and nothing", line, ran.Code, ran.Stdout)
		}
	}
}

func TestPercentileIsOneThatWasMeasured(t *testing.T) {
	t.Parallel()
	var ms []time.Duration
	for n := 100; n > 0; n-- {
		ms = append(ms, time.Duration(n)*time.Millisecond)
	}
	for share, want := range map[float64]time.Duration{0.5: 50, 0.95: 95, 0.99: 99, 1: 100} {
		if got := bench.Percentile(ms, share); got != want*time.Millisecond {
			t.Errorf("the percentile %v is %v, want %d ms", share, got, want)
		}
	}
	if bench.Percentile(nil, 0.5) != 0 || bench.Percentile(ms[:1], 0.01) != 100*time.Millisecond {
		t.Error("none has no percentile, and one is every percentile")
	}
}

func TestWhatLimitsIsComputed(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name                           string
		engine, postgres, client, busy time.Duration
		waits                          map[string]int
		want                           []string
	}{
		{"processors", 400 * ms, 1300 * ms, 200 * ms, 1950 * ms, nil, []string{"the processors, most of all PostgreSQL", "engine 20 %", "PostgreSQL 65 %", "client 10 %"}},
		{"other programs", 200 * ms, 200 * ms, 100 * ms, 2000 * ms, nil, []string{"the processors, most of all other programs", "other programs 75 %"}},
		{"disk", 200 * ms, 200 * ms, 100 * ms, 500 * ms, map[string]int{"IO/WALSync": 8, "CPU": 2}, []string{"waiting", "25 %", "IO/WALSync 80 %, CPU 20 %"}},
		{"nobody at work", 0, 0, 100 * ms, 100 * ms, nil, []string{"waiting", "no session of PostgreSQL"}},
	} {
		got := bench.Limits(c.engine, c.postgres, c.client, c.busy, c.waits)
		for _, words := range c.want {
			if !strings.Contains(got, words) {
				t.Errorf("%s: %q lacks %q", c.name, got, words)
			}
		}
	}
}

func TestAPageKeepsWhatIsWrittenByHand(t *testing.T) {
	t.Parallel()
	m := bench.Measurement{Name: "as fast as answered", Limits: "the disk",
		Figures: []bench.Figure{{Name: "stored", Value: 1234.5, Unit: "activities/s", Target: 3000}, {Name: "202 p99", Value: 0.0123, Unit: "ms", Target: 50, Most: true}}}
	page := bench.Markdown([]bench.Report{{Command: "lightweb bench inbox", Measured: []bench.Measurement{m}}}, "old figures\n"+bench.Handwritten+"\n\n## Where the time goes\n\nIn GIN indexes.\n")
	for _, want := range []string{"## `lightweb bench inbox`", "| stored | 1234 activities/s | ≥ 3000 (missed) |", "| 202 p99 | 0.012 ms | ≤ 50.0 |", "Limited by the disk.", "\nIn GIN indexes.\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "old figures") {
		t.Error("old figures are left on the page")
	}
	if again := bench.Markdown([]bench.Report{{}}, page); !strings.Contains(again, "In GIN indexes.") {
		t.Errorf("the second time it is lost:\n%s", again)
	}
}
