package main

import (
	"slices"
	"strings"
	"testing"
)

// found returns the mutations that an operator makes in a source text, each as "before => after".
// An empty operator means all operators.
func found(t *testing.T, operator, text string) []string {
	t.Helper()
	s, err := parseSource("p/a.go", text)
	if err != nil {
		t.Fatal(err)
	}
	p := &pkg{name: "p", sources: []source{s}}
	var got []string
	for _, m := range p.mutants() {
		if m.Operator != operator && operator != "" {
			continue
		}
		got = append(got, m.From+" => "+m.To)
		if _, err := parseSource("p/a.go", p.applyMutant(m)); err != nil {
			t.Errorf("%s at %s is no Go: %v", m.Operator, m.Place, err)
		}
	}
	return got
}

func TestOperators(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, operator, body string
		want                 []string
	}{
		{"a condition is negated", "negated condition", `if a == b || c { f() }`, []string{"a == b || c => !(a == b || c)"}},
		{"that of an error alone is not", "negated condition", `if err != nil { return }`, nil},
		{"a call is dropped", "dropped statement", `f(a)`, []string{"f(a) => "}},
		{"an assignment is dropped", "dropped statement", `a.b = c`, []string{"a.b = c => "}},
		{"a declaration is not", "dropped statement", `a := c`, nil},
		{"what gives back is not", "dropped statement", "defer f()\nm.mu.Lock()\nm.mu.Unlock()\n_ = r.Close()", nil},
		{"a log line is not", "dropped statement", `w.log.WarnContext(ctx, "deliveries not read", "err", err)`, nil},
		{"one inside of a case is dropped", "dropped statement", "switch a {\ncase 1:\nn++\n}", []string{"n++ => "}},
		{"a bound is shifted", "shifted bound", `f(a < b, a <= b, a > b, a >= b)`,
			[]string{"a < b => a <= b", "a <= b => a < b", "a > b => a >= b", "a >= b => a > b"}},
		{"an equation has no bound", "shifted bound", `f(a == b)`, nil},
		{"a guard lets through", "skipped policy call", `if blocked(a) { return }`, []string{"blocked(a) => false && (blocked(a))"}},
		{"a guard with an error lets through", "skipped policy call", "if err := checkOrigin(a); err != nil {\nreturn\n}",
			[]string{"err != nil => false && (err != nil)"}},
		{"a question to a policy counts", "skipped policy call", `if !audience.Names(a, b) { return }`,
			[]string{"!audience.Names(a, b) => false && (!audience.Names(a, b))"}},
		{"what does more than leave is no guard", "skipped policy call", "if blocked(a) {\nf()\n}", nil},
		{"the standard library has no policy", "skipped policy call", `if strings.HasPrefix(a, b) || errors.Is(a, b) { return }`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := "package p\nimport (\"errors\"; \"strings\")\nfunc f() {\n" + c.body + "\n}\n"
			if got := found(t, c.operator, text); !slices.Equal(got, c.want) {
				t.Errorf("finds %q, want %q", got, c.want)
			}
		})
	}
}

func TestConjuncts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"each of a clause", "SELECT a FROM b WHERE x = $1 AND y > 'AND' ORDER BY a", []string{"x = $1", "y > 'AND'"}},
		{"the bounds of BETWEEN are one", "WHERE x BETWEEN 1 AND 2 AND y", []string{"x BETWEEN 1 AND 2", "y"}},
		{"one in brackets", "WHERE (a OR b AND c) AND d", []string{"(a OR b AND c)", "c", "d"}},
		{"a query inside of a query", "WHERE NOT EXISTS (SELECT FROM t WHERE k = $1) RETURNING a", []string{"NOT EXISTS (SELECT FROM t WHERE k = $1)", "k = $1"}},
		{"a case is whole", "WHERE CASE WHEN a AND b THEN c ELSE d END AND e", []string{"CASE WHEN a AND b THEN c ELSE d END", "b", "e"}},
		{"none in words", "read activity and object", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, at := range findConjuncts(c.text, false) {
				got = append(got, c.text[at[0]:at[1]])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("conjuncts(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestAConjunctThatGoesOnElsewhereIsNone(t *testing.T) {
	t.Parallel()
	text := "package p\nconst q = `SELECT a WHERE x AND NOT ` + open + ` AND y`\n"
	want := []string{"x => (x OR true)", "y => (y OR true)"}
	if got := found(t, "removed SQL conjunct", text); !slices.Equal(got, want) {
		t.Errorf("finds %q, want %q", got, want)
	}
}

func TestNearTestsAreThoseOfTheFileAndOfTheFunction(t *testing.T) {
	t.Parallel()
	of := func(path, text string) source {
		s, err := parseSource(path, text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p := &pkg{tests: []source{
		of("p/a_test.go", "package p\nfunc TestMain() {}\nfunc TestA() {}\nfunc help() { claim() }"),
		of("p/b_test.go", "package p\nfunc TestB() { claim() }\nfunc TestC() { claimed() }\nfunc TestABoundIsKept() {}"),
	}}
	if got := strings.Join(p.nearbyTests(mutant{path: "p/a.go", Function: "claim"}), " "); got != "TestA TestB TestABoundIsKept" {
		t.Errorf("near tests are %s, want those of a_test.go, and TestB, which names claim", got)
	}
	if got := strings.Join(p.nearbyTests(mutant{path: "p/a_bound.go", Function: "f"}), " "); got != "TestABoundIsKept" {
		t.Errorf("near tests are %s, want the one named for the file", got)
	}
}

func TestADrawDependsOnSeedAndPackageAlone(t *testing.T) {
	t.Parallel()
	var places []mutant
	for n := range 20 {
		places = append(places, mutant{Operator: operators[min(n/4, 1)].name, Place: string(rune('a' + n))})
	}
	order := func(seed uint64, name string) (s string) {
		for _, m := range drawMutants(places, seed, name) {
			s += m.Place
		}
		return s
	}
	first := order(1, "db")
	if again := order(1, "db"); again != first {
		t.Errorf("the same seed draws %s and %s", first, again)
	}
	if order(2, "db") == first || order(1, "engine") == first {
		t.Error("another seed or package draws the same")
	}
	kinds := map[string]bool{}
	for _, m := range drawMutants(places, 1, "db")[:2] {
		kinds[m.Operator] = true
	}
	if len(kinds) != 2 {
		t.Error("the first two mutants are of one kind")
	}
}

func TestTheWatcherStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	stopped := 0
	w := &watcher{found: func() { stopped++ }}
	for _, part := range []string{"=== RUN   TestA\n=== RUN   TestA/x\n    --- FA", "IL: TestA/x (0.00s)\n--- FAIL: TestA\n"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if stopped != 1 || w.test != "TestA/x" {
		t.Errorf("stopped %d times, at %s", stopped, w.test)
	}
	w = &watcher{found: func() { stopped++ }}
	if _, err := w.Write([]byte("=== CONT  TestB\npanic: test timed out after 1s\n")); err != nil {
		t.Fatal(err)
	}
	if !w.timedOut || w.test != "TestB" {
		t.Errorf("timed out = %t, at %s", w.timedOut, w.test)
	}
}

func TestARoundCountsTimeoutsAsKilled(t *testing.T) {
	t.Parallel()
	r := round{Verdicts: []verdict{{Outcome: killed}, {Outcome: timedOut}, {Outcome: survived}}}
	if got := r.share(); got != 66 {
		t.Errorf("share() = %d, want 66", got)
	}
	if got := (&round{}).share(); got != 0 {
		t.Errorf("share() of no mutant = %d, want 0", got)
	}
}
