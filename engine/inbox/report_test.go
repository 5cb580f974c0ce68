package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

const flag = `{"id":"p:/flags/1","type":"Flag","actor":"p:/carol","content":"spam","object":["us:/alice","us:/alice/objects/1","p:/notes/1"]}`

// A report reaches the operator only. The reported user's database stores nothing of the report,
// whichever inbox receives it.
func TestAReportIsKeptForTheOperator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, inbox, body string
		users             bool // whether the report is about alice
		objects           int  // how many objects the report names; 0 if the report is not kept
		kind              fault.Kind
	}{
		{"as Mastodon sends it", mine, flag, true, 3, accepted},
		{"as Lemmy sends it", mine, strings.Replace(flag, "content", "summary", 1), true, 3, accepted},
		{"through the shared inbox", shared, flag, true, 3, accepted},
		{"of one object", shared, strings.Replace(flag, `["us:/alice","us:/alice/objects/1","p:/notes/1"]`, `"us:/alice/objects/1"`, 1), true, 1, accepted},
		{"of embedded objects", shared, strings.Replace(flag, `"us:/alice","us:/alice/objects/1"`, `{"id":"us:/alice","type":"Person"},{"type":"Note"}`, 1), true, 2, accepted},
		{"of this server", shared, strings.Replace(flag, `"us:/alice","us:/alice/objects/1"`, `"us:/actor"`, 1), false, 2, accepted},
		{"to this server", shared, strings.Replace(flag, `"object":["us:/alice","us:/alice/objects/1",`, `"to":"us:/actor","object":[`, 1), false, 1, accepted},
		{"of nobody here", mine, strings.Replace(flag, `"us:/alice","us:/alice/objects/1",`, ``, 1), false, 0, accepted},
		{"of a user who does not exist", shared, strings.ReplaceAll(flag, "us:/alice", "us:/users/nobody"), false, 0, accepted},
		{"of nothing", shared, strings.Replace(flag, `"us:/alice","us:/alice/objects/1","p:/notes/1"`, ``, 1), false, 0, fault.Invalid},
		{"of what is no object", shared, strings.Replace(flag, `"p:/notes/1"`, `7`, 1), false, 0, fault.Invalid},
		{"ORG-24 of 10,000 objects", shared, strings.Replace(flag, `"p:/notes/1"`, thousands(), 1), true, 100, accepted},
		{"that says too much", shared, strings.Replace(flag, `spam`, strings.Repeat("é", 6000), 1), true, 3, accepted},
		{"under another server's id", shared, strings.Replace(flag, "p:/flags", "q:/flags", 1), false, 0, fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			expect(t, s, nil, fault.Unauthenticated, func() error { return s.Send("q:/mallory", c.inbox, c.body) })
			for range 2 { // the second arrival changes nothing
				expect(t, s, nil, c.kind, func() error { return s.Send("p:/carol", c.inbox, c.body) })
			}
			kept, err := s.Store.Instance.Reports.List(t.Context(), false)
			if err != nil || len(kept) != min(c.objects, 1) {
				t.Fatalf("%d reports are kept, %v; want %d", len(kept), err, min(c.objects, 1))
			}
			if c.objects == 0 {
				return
			}
			r := kept[0]
			if r.Activity != s.ID("p:/flags/1") || r.Actor != s.ID("p:/carol") || len(r.Objects) != c.objects || slices.Contains(r.Users, s.Alice.String()) != c.users {
				t.Errorf("kept %+v, want carol's report of %d objects", r, c.objects)
			}
			if n := len([]rune(r.Content)); n != 4 && n != 5000 {
				t.Errorf("%d characters of it are kept, want all 4, or 5000", n)
			}
		})
	}
}

func thousands() string {
	ids := make([]string, 10_000)
	for n := range ids {
		ids[n] = fmt.Sprintf(`"p:/notes/%d"`, n)
	}
	return strings.Join(ids, ",")
}

// The number of reports of one domain is bounded, however many host names and actors the domain
// uses.
func TestADomainDoesNotReportWithoutEnd(t *testing.T) {
	s := newScene(t)
	report := func(n int) error {
		by := []string{"p:/carol", "p:/dave"}[n%2]
		return s.Send(by, shared, strings.NewReplacer("p:/flags/1", fmt.Sprintf("p:/flags/%d", n), "p:/carol", by).Replace(flag))
	}
	n := 0
	for n < 150 && fault.KindOf(report(n)) != fault.RateLimited {
		n++
	}
	if n < 100 || n == 150 {
		t.Fatalf("%d reports are taken at once, want 100", n)
	}
	s.Later(2 * time.Minute)
	if err := report(n); err != nil {
		t.Errorf("after two minutes: %v", err)
	}
}

func TestAReportCannotBeTakenBack(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", shared, flag)
	expect(t, s, nil, accepted, func() error {
		return s.Send("p:/carol", mine, `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","to":"us:/alice","object":`+flag+`}`)
	})
	if kept, err := s.Store.Instance.Reports.List(t.Context(), false); err != nil || len(kept) != 1 {
		t.Errorf("%d reports are open, %v; want 1", len(kept), err)
	}
}
