package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
)

// Reports are the reports that other servers send to the operator.
type Reports struct{ in *instance.Instance }

// Report is a report that another server sent to the operator.
type Report = dbinstance.Report

// List returns the open reports, or all reports if all is true. The newest come first.
func (rs Reports) List(ctx context.Context, all bool) ([]Report, error) {
	return rs.in.DB.Instance.Reports.List(ctx, all)
}

// Find returns a report. The fault is NotFound when there is no report with that id.
func (rs Reports) Find(ctx context.Context, id int64) (Report, error) {
	return rs.in.DB.Instance.Reports.Find(ctx, id)
}

// Resolve closes reports. Unless note is empty, it replaces the notes of the reports. Resolve
// returns the ids of the reports that exist. The fault is NotFound when none of them exists, and
// Partial when some do not.
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
