package budgets_test

import (
	"fmt"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// Of 20 nodes of a NodePool 2 may go at a time, and none of them as underutilized in the 8 hours from 9 o'clock on.
func ExampleAllowedDisruptions() {
	d := cluster.Disruption{Budgets: []cluster.NodeBudget{
		{Nodes: "10%", Every: true},
		{Nodes: "0", Reasons: []string{string(v1.DisruptionUnderutilized)}, Schedule: "0 9 * * *", Duration: 8 * time.Hour},
	}}
	for _, hour := range []int{8, 10} {
		now := time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)
		for _, reason := range []v1.DisruptionReason{v1.DisruptionUnderutilized, v1.DisruptionDrifted} {
			n, err := budgets.AllowedDisruptions(d, reason, 20, now)
			fmt.Println(hour, reason, n, err)
		}
	}
	// Output:
	// 8 Underutilized 2 <nil>
	// 8 Drifted 2 <nil>
	// 10 Underutilized 0 <nil>
	// 10 Drifted 2 <nil>
}
