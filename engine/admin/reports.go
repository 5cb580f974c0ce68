package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Reports are the reports that other servers send to the operator.
type Reports struct{ in *instance.Instance }

// Report is a report that another server sent to the operator.
type Report struct {
	ID         int64      `json:"id"`
	State      string     `json:"state"` // open, resolved
	Activity   vocab.ID   `json:"activity"`
	Actor      vocab.ID   `json:"actor"` // the reporter: often the actor of a whole server
	Host       string     `json:"host"`
	Users      []string   `json:"users"` // local users: reported themselves, or authors of reported objects
	Objects    []vocab.ID `json:"objects"`
	Content    string     `json:"content"` // plain text
	ReceivedAt time.Time  `json:"received_at"`
	ResolvedAt *time.Time `json:"resolved_at"`
	Note       string     `json:"note"`
}

// describeReport returns the row as commands show it.
func describeReport(r dbinstance.Report) Report {
	return Report{ID: r.ID, State: r.State, Activity: r.Activity, Actor: r.Actor, Host: r.Actor.Host(), Users: r.Users, Objects: r.Objects,
		Content: r.Content, ReceivedAt: r.ReceivedAt, ResolvedAt: r.ResolvedAt, Note: r.Note}
}

// List returns the open reports, or all, the newest first.
func (rs Reports) List(ctx context.Context, all bool) ([]Report, error) {
	rows, err := rs.in.DB.Instance.Reports.List(ctx, all)
	out := make([]Report, len(rows))
	for i, r := range rows {
		out[i] = describeReport(r)
	}
	return out, err
}

// Find returns a report. The fault is NotFound when there is none.
func (rs Reports) Find(ctx context.Context, id int64) (Report, error) {
	r, err := rs.in.DB.Instance.Reports.Find(ctx, id)
	return describeReport(r), err
}

// Resolve closes reports and adds a note unless it is empty. It returns the ids that exist. The
// fault is NotFound when none does, Partial when some do not.
func (rs Reports) Resolve(ctx context.Context, ids []int64, note string) ([]int64, error) {
	resolved, err := rs.in.DB.Instance.Reports.Resolve(ctx, ids, note, rs.in.Now())
	if err != nil {
		return nil, err
	}
	slices.Sort(resolved)
	var missing []string
	for _, id := range ids {
		if !slices.Contains(resolved, id) {
			missing = append(missing, strconv.FormatInt(id, 10))
		}
	}
	if len(missing) == 0 {
		return resolved, nil
	}
	kind := fault.Partial
	if len(resolved) == 0 {
		kind = fault.NotFound
	}
	return resolved, fault.New(kind, fmt.Sprintf("there is no report %s", strings.Join(missing, ", "))).WithHint("lightweb report list --all")
}
