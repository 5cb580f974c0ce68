package outbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
)

// A dispatch runs the steps of docs/architecture.md in their order.
func TestADispatchGoesThroughTheStepsOfTheArchitecture(t *testing.T) {
	d := newDesk(t)
	var log bytes.Buffer
	deps := d.Deps
	deps.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d.Outbox = New(deps)
	r, err := d.dispatch("CreateNote", map[string]any{"content": "hello", "visibility": "public"})
	if err != nil || r.ActivityID == "" {
		t.Fatalf("dispatched %+v, %v", r, err)
	}
	if want, got := documentedSteps(t), stepsIn(t, &log); !slices.Equal(want, got) {
		t.Errorf("the steps were %q, the architecture shows %q", got, want)
	}
}

// documentedSteps returns the steps of the diagram that begins with validateAction.
func documentedSteps(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if steps := strings.Split(strings.TrimSpace(line), " --> "); steps[0] == "validateAction" {
			return steps
		}
	}
	t.Fatal("no diagram of the outbound pipeline")
	return nil
}

// stepsIn returns the steps in a log in the order in which they began. The log has the steps in
// the order in which they ended, outer steps last.
func stepsIn(t *testing.T, log *bytes.Buffer) (steps []string) {
	t.Helper()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, Step string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Msg == "step ran" {
			steps = append(steps, line.Step)
		}
	}
	slices.Reverse(steps)
	return steps
}
