package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
)

var quiet = slog.New(slog.DiscardHandler)

// trace is an exchange. It records the steps that it went through.
type trace struct{ steps []string }

func visit(name string) Step[*trace] {
	return Do(name, func(_ context.Context, x *trace) error {
		x.steps = append(x.steps, name)
		return nil
	})
}

func fail(name string, err error) Step[*trace] {
	return Do(name, func(context.Context, *trace) error { return err })
}

func TestStepsRunInOrder(t *testing.T) {
	var x trace
	wrap := Step[*trace]{"wrap", func(ctx context.Context, x *trace, next Next) error {
		x.steps = append(x.steps, "before")
		err := next(ctx)
		x.steps = append(x.steps, "after")
		return err
	}}
	if err := New("receive", quiet, nil, visit("a"), wrap, visit("b"), visit("c")).Run(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "before", "b", "c", "after"}; !slices.Equal(x.steps, want) {
		t.Errorf("ran %q, want %q", x.steps, want)
	}
}

func TestAPipelineWithoutStepsSucceeds(t *testing.T) {
	if err := New[*trace]("empty", quiet, nil).Run(t.Context(), &trace{}); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestAStepThatDoesNotCallNextEndsTheExchange(t *testing.T) {
	boom := errors.New("boom")
	for name, want := range map[string]error{"with success": nil, "with its error": boom} {
		t.Run(name, func(t *testing.T) {
			var x trace
			end := Step[*trace]{"end", func(context.Context, *trace, Next) error { return want }}
			err := New("receive", quiet, nil, visit("a"), end, visit("b")).Run(t.Context(), &x)
			if !errors.Is(err, want) || (err == nil) != (want == nil) || !slices.Equal(x.steps, []string{"a"}) {
				t.Errorf("Run = %v after %q, want %v after a", err, x.steps, want)
			}
		})
	}
}

func TestAContextGoesDownTheSteps(t *testing.T) {
	type key struct{}
	set := Step[*trace]{"set", func(ctx context.Context, _ *trace, next Next) error { return next(context.WithValue(ctx, key{}, "v")) }}
	read := Do("read", func(ctx context.Context, _ *trace) error {
		if ctx.Value(key{}) != "v" {
			return errors.New("the value is lost")
		}
		return nil
	})
	if err := New("receive", quiet, nil, set, visit("a"), read).Run(t.Context(), &trace{}); err != nil {
		t.Error(err)
	}
}

func TestAnErrorCarriesTheNameOfOneStep(t *testing.T) {
	gone := fault.New(fault.Gone, "deleted").WithHint("look elsewhere")
	pass := func(name string) Step[*trace] {
		return Step[*trace]{name, func(ctx context.Context, _ *trace, next Next) error { return next(ctx) }}
	}
	returns := func(name string, change func(error) error) Step[*trace] {
		return Step[*trace]{name, func(ctx context.Context, _ *trace, next Next) error { return change(next(ctx)) }}
	}
	inner := New("apply", quiet, nil, pass("claim"), fail("store", gone))
	nested := Do("fanOut", func(ctx context.Context, x *trace) error { return inner.Run(ctx, x) })
	retry := Step[*trace]{"retry", func(ctx context.Context, _ *trace, next Next) error {
		if err := next(ctx); err == nil {
			return errors.New("the first try succeeded")
		}
		return next(ctx)
	}}
	tests := []struct {
		name  string
		steps []Step[*trace]
		want  string
		kind  fault.Kind
	}{
		{"of the first", []Step[*trace]{fail("a", gone), visit("b")}, "a: deleted", fault.Gone},
		{"of the last", []Step[*trace]{visit("a"), visit("b"), pass("c"), fail("d", gone)}, "d: deleted", fault.Gone},
		{"of one between", []Step[*trace]{pass("a"), fail("b", gone), visit("c")}, "b: deleted", fault.Gone},
		{"not of a step that wraps it", []Step[*trace]{
			returns("a", func(err error) error { return fmt.Errorf("commit batch: %w", err) }), fail("b", gone)},
			"commit batch: b: deleted", fault.Gone},
		{"not of a step that adds a failure to it", []Step[*trace]{
			returns("a", func(err error) error { return errors.Join(err, errors.New("roll back")) }), fail("b", gone)},
			"b: deleted\nroll back", fault.Gone},
		{"not of a step that gives it another kind", []Step[*trace]{
			returns("a", func(err error) error { return fault.Wrap(fault.Busy, "try again", err) }), fail("b", gone)},
			"try again: b: deleted", fault.Busy},
		{"of a step that makes its own of it", []Step[*trace]{
			returns("a", func(error) error { return gone }), fail("b", errors.New("boom"))}, "a: deleted", fault.Gone},
		{"of a step that fails after the others", []Step[*trace]{
			returns("a", func(error) error { return gone }), visit("b")}, "a: deleted", fault.Gone},
		{"of a step that tries twice", []Step[*trace]{retry, fail("b", gone)}, "b: deleted", fault.Gone},
		{"without a kind", []Step[*trace]{visit("a"), fail("b", errors.New("boom"))}, "b: boom", fault.Internal},
		{"of steps within a step", []Step[*trace]{visit("a"), nested}, "fanOut: store: deleted", fault.Gone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := New("receive", quiet, nil, tt.steps...).Run(t.Context(), &trace{})
			if err == nil || err.Error() != tt.want || fault.KindOf(err) != tt.kind {
				t.Fatalf("Run = %v of kind %d, want %q of kind %d", err, fault.KindOf(err), tt.want, tt.kind)
			}
			if tt.kind == fault.Gone && !errors.Is(err, gone) {
				t.Error("the cause cannot be reached")
			}
		})
	}
}

func TestAStepMayForgiveALaterOne(t *testing.T) {
	forgive := Step[*trace]{"forgive", func(ctx context.Context, _ *trace, next Next) error {
		if err := next(ctx); fault.KindOf(err) != fault.Gone {
			return err
		}
		return nil
	}}
	if err := New("receive", quiet, nil, forgive, fail("b", fault.New(fault.Gone, "deleted"))).Run(t.Context(), &trace{}); err != nil {
		t.Errorf("Run = %v, want success", err)
	}
}

func TestAContextThatEndsBetweenSteps(t *testing.T) {
	for name, cause := range map[string]error{"cancelled": context.Canceled, "out of time": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end := Do("b", func(context.Context, *trace) error {
					if errors.Is(cause, context.Canceled) {
						cancel()
					}
					// the sleep uses the clock of the synctest bubble
					time.Sleep(2 * time.Second)
					return nil
				})
				var x trace
				err := New("receive", quiet, nil, visit("a"), end, visit("c"), visit("d")).Run(ctx, &x)
				if !slices.Equal(x.steps, []string{"a"}) {
					t.Errorf("ran %q, want no step after the end", x.steps)
				}
				if !errors.Is(err, cause) || fault.KindOf(err) != fault.Busy || !strings.HasPrefix(err.Error(), "c: ") || strings.Count(err.Error(), "b: ") != 0 {
					t.Errorf("Run = %v of kind %d, want busy, by the step that could not start", err, fault.KindOf(err))
				}
			})
		})
	}
	t.Run("after the last step", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last := Do("a", func(context.Context, *trace) error { cancel(); return nil })
		if err := New("receive", quiet, nil, last).Run(ctx, &trace{}); err != nil {
			t.Errorf("Run = %v, want what was done to count", err)
		}
	})
	t.Run("before the first step", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var x trace
		if err := New("receive", quiet, nil, visit("a")).Run(ctx, &x); fault.KindOf(err) != fault.Busy || len(x.steps) != 0 {
			t.Errorf("Run = %v after %q, want busy at once", err, x.steps)
		}
	})
}

// timings returns how often each step ran, and the seconds that it took. The keys are
// "pipeline/step".
func timings(t *testing.T, reg *prometheus.Registry) map[string][2]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][2]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			h := m.GetHistogram()
			out[strings.Join(labels, "/")] = [2]float64{float64(h.GetSampleCount()), h.GetSampleSum()}
		}
	}
	return out
}

func TestTimeOfAStepExcludesTheStepsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// the sleep uses the clock of the synctest bubble
		take := func(d time.Duration) { time.Sleep(d) }
		around := Step[*trace]{"around", func(ctx context.Context, _ *trace, next Next) error {
			take(time.Second)
			err := next(ctx)
			take(2 * time.Second)
			return err
		}}
		twice := Step[*trace]{"twice", func(ctx context.Context, _ *trace, next Next) error {
			take(5 * time.Second)
			if err := next(ctx); err != nil {
				return err
			}
			return next(ctx)
		}}
		last := Do("last", func(context.Context, *trace) error { take(time.Minute); return errors.Join() })
		reg := prometheus.NewRegistry()
		if err := New("receive", quiet, reg, around, twice, last).Run(t.Context(), &trace{}); err != nil {
			t.Fatal(err)
		}
		got := timings(t, reg)
		for step, want := range map[string][2]float64{
			"receive/around": {1, 3}, "receive/twice": {1, 5}, "receive/last": {2, 120},
		} {
			if got[step] != want {
				t.Errorf("%s ran %v times for %v s, want %v", step, got[step][0], got[step][1], want)
			}
		}
	})
}

func TestStepsThatFailAreTimedAndOthersAreNot(t *testing.T) {
	reg := prometheus.NewRegistry()
	p := New("receive", quiet, reg, visit("a"), fail("b", errors.New("boom")), visit("c"))
	if err := p.Run(t.Context(), &trace{}); err == nil {
		t.Fatal("Run succeeded")
	}
	got := timings(t, reg)
	for step, want := range map[string]float64{"receive/a": 1, "receive/b": 1, "receive/c": 0} {
		if n, ok := got[step]; !ok || n[0] != want {
			t.Errorf("%s ran %v times, listed: %t; want %v", step, n[0], ok, want)
		}
	}
}

func TestTwoPipelinesShareARegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	receive, apply := New("receive", quiet, reg, visit("a")), New("apply", quiet, reg, visit("a"))
	for range 2 {
		if err := errors.Join(receive.Run(t.Context(), &trace{}), apply.Run(t.Context(), &trace{})); err != nil {
			t.Fatal(err)
		}
	}
	got := timings(t, reg)
	if len(got) != 2 || got["receive/a"][0] != 2 || got["apply/a"][0] != 2 {
		t.Errorf("timed %v, want both pipelines twice", got)
	}
}

func TestAnotherMetricOfTheSameNameIsAMistake(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "lightweb_pipeline_step_seconds", Help: "something else"}))
	defer func() {
		if recover() == nil {
			t.Error("New took it, want a panic at start-up")
		}
	}()
	New("receive", quiet, reg, visit("a"))
}

func TestOnePipelineServesManyAtOnce(t *testing.T) {
	p := New("receive", quiet, prometheus.NewRegistry(), visit("a"), visit("b"), visit("c"))
	done := make(chan error)
	const callers = 16
	for range callers {
		go func() {
			var x trace
			err := p.Run(context.Background(), &x)
			if !slices.Equal(x.steps, []string{"a", "b", "c"}) {
				err = fmt.Errorf("ran %q", x.steps)
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestStepsAreLoggedOnceEach(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	err := New("receive", log, nil, visit("a"), fail("b", errors.New("boom")), visit("c")).Run(t.Context(), &trace{})
	if err == nil {
		t.Fatal("Run succeeded")
	}
	if got := b.String(); strings.Count(got, "step=b") != 1 || strings.Count(got, "boom") != 1 || strings.Contains(got, "step=c") {
		t.Errorf("logged:\n%s", got)
	}
}
