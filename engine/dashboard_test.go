package engine_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

var (
	metricName = regexp.MustCompile(`\b(?:lightweb|process|go)_[a-z_]+`)
	metricBy   = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
)

// shownMetrics returns the lines of a metrics page. The keys are the names of the metrics.
func shownMetrics(page string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(page) {
		if name := metricName.FindString(line); name != "" {
			all[name] += line
		}
	}
	return all
}

// The dashboard and the alerts name only metrics that a server shows, and sum them only by labels
// that these metrics have. docs/operations.md explains every metric that a server shows.
func TestDashboardAndAlertsNameMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	redistest.Program(t) // if there is no Redis program, the cache has no metrics
	a, b := enginetest.StartTwo(t)
	reader, writer := b.CreateUser(t, "reader"), a.CreateUser(t, "writer")
	befriend(t, reader, writer)
	id, _ := writer.Post(t, map[string]any{"content": "count me"})
	delivered(t, writer, id, false)
	askConversation(t, writer)
	shown := shownMetrics(a.Metrics(t) + b.Metrics(t))
	checkDocumented(t, shown)

	var exprs []string
	board, err := os.ReadFile("../docs/deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(board, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	alerts, err := os.ReadFile("../docs/deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(alerts)) {
		if expr, is := strings.CutPrefix(strings.TrimSpace(line), "expr: "); is {
			exprs = append(exprs, expr)
		}
	}
	if len(exprs) < 25 {
		t.Fatalf("only %d expressions found", len(exprs))
	}
	for _, expr := range exprs {
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", expr)
		}
		for _, name := range names {
			series := shown[name]
			if series == "" {
				t.Errorf("%s: no server shows %s", expr, name)
			}
			for _, by := range metricBy.FindAllStringSubmatch(expr, -1) {
				for _, label := range strings.Split(by[1], ", ") {
					if label != "instance" && !strings.Contains(series, label+`="`) {
						t.Errorf("%s: %s has no label %s", expr, name, label)
					}
				}
			}
		}
	}
}

// checkDocumented checks that docs/operations.md explains every metric of the engine.
func checkDocumented(t *testing.T, shown map[string]string) {
	t.Helper()
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, name := range metricName.FindAllString(string(page), -1) {
		explained[name] = true
	}
	for name := range shown {
		// the suffixes of a histogram's series
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if whole, is := strings.CutSuffix(name, part); is && shown[whole] != "" {
				name = whole
			}
		}
		if strings.HasPrefix(name, "lightweb_") && !explained[name] {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
	}
}

// askConversation lets the user make an encrypted conversation and send a message to it.
func askConversation(t *testing.T, u *enginetest.User) {
	t.Helper()
	device := mlstest.NewDevice(u.ID, time.Now())
	group := mlstest.NewGroup(device)
	var made struct{ ID string }
	if status := askJSON(t, u, http.MethodPost, "/api/conversations", "", map[string]any{"groupInfo": group.Info(device)}, &made); status != http.StatusCreated {
		t.Fatalf("a conversation is answered %d", status)
	}
	path := "/api/conversations/" + made.ID + "/messages"
	if status := askJSON(t, u, http.MethodPost, path, "", map[string]any{"message": group.Message()}, nil); status != http.StatusCreated {
		t.Fatalf("a message is answered %d", status)
	}
}
