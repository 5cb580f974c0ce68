package client_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// play runs api.js against a server that refuses a number of requests. The clock does not really
// wait. play prints how often each request was sent, and the seconds between the attempts.
const play = `
let asked = [], waits = []
globalThis.sessionStorage = { getItem: () => null }
globalThis.setTimeout = (then, after) => { waits.push(Math.round(after / 1000)); then() }
Math.random = () => 0
const { request } = await import(process.argv[1])
const told = []
for (const [method, headers, refusals, status, after] of JSON.parse(process.argv[2])) {
	asked = [], waits = []
	globalThis.fetch = async (path, { headers }) => {
		asked.push(headers["Idempotency-Key"] ?? "")
		const isRefused = asked.length <= refusals
		return new Response(isRefused ? '{"error":"overloaded"}' : "{}", { status: isRefused ? status : 200, headers: isRefused && after ? { "Retry-After": after } : {} })
	}
	const end = await request(method, "/api/x", undefined, headers).then(() => "done", ({ code }) => code)
	told.push({ end, asked: asked.length, keys: new Set(asked).size, waits })
}
console.log(JSON.stringify(told))`

// The client repeats a request that is safe to repeat, after the time in Retry-After. It gives up
// after the third attempt. It also gives up if Retry-After has no time, or too long a time.
func TestAServerThatIsBusyIsAskedAgainWhenItSays(t *testing.T) {
	t.Parallel()
	node := enginetest.Node(t)
	type told struct {
		End         string
		Asked, Keys int
		Waits       []int
	}
	key := map[string]string{"Idempotency-Key": "k"}
	cases := []struct {
		name  string
		plays []any
		want  told
	}{
		{"reading", []any{"GET", nil, 2, 503, "7"}, told{"done", 3, 1, []int{7, 7}}},
		{"an action", []any{"POST", key, 1, 503, "30"}, told{"done", 2, 1, []int{30}}},
		{"three times", []any{"GET", nil, 9, 503, "1"}, told{"overloaded", 3, 1, []int{1, 1}}},
		{"not safe to repeat", []any{"POST", nil, 1, 503, "1"}, told{"overloaded", 1, 1, []int{}}},
		{"too long", []any{"GET", nil, 1, 503, "31"}, told{"overloaded", 1, 1, []int{}}},
		{"no time", []any{"GET", nil, 1, 503, ""}, told{"overloaded", 1, 1, []int{}}},
		{"another refusal", []any{"GET", nil, 1, 429, "1"}, told{"overloaded", 1, 1, []int{}}},
	}
	var plays []any
	for _, c := range cases {
		if c.plays[1] == nil {
			c.plays[1] = map[string]string{}
		}
		plays = append(plays, c.plays)
	}
	given, err := json.Marshal(plays)
	if err != nil {
		t.Fatal(err)
	}
	api, err := filepath.Abs("api.js")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", play, api, string(given)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []told
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%v: %s", err, out)
	}
	for n, c := range cases {
		if g := got[n]; g.End != c.want.End || g.Asked != c.want.Asked || g.Keys != c.want.Keys || !slices.Equal(g.Waits, c.want.Waits) {
			t.Errorf("%s: %+v, want %+v", c.name, g, c.want)
		}
	}
}
