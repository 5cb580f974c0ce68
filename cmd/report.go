package cmd

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/fault"
)

func newReport(a *app) *cobra.Command {
	return newGroup("report", "Reports by other servers", "report shows what other servers report to the operator of this one: users, and what they wrote. Nobody else is told,\nand nothing is done about it: that is for the operator.",
		newReportList(a), newReportShow(a), newReportResolve(a))
}

// reportIDs parses the ids of reports.
func reportIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, fault.New(fault.Usage, fmt.Sprintf("%.40q is no id of a report", arg)).WithHint("lightweb report list")
		}
		ids[i] = id
	}
	return ids, nil
}
