package plan_test

import (
	"fmt"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// A plan says in words what it wants, and what it leaves without a node. The same lines are in the log.
func ExamplePlan_Lines() {
	offering := instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Type: "m7g.large", Zone: "eu-west-1b"}
	p := plan.Plan{
		Launches: []plan.Launch{{Pool: "general", Types: []string{"m7g.large", "m6g.large"},
			Choice: instancetypes.Offering{OfferingKey: offering, Price: 0.034}, Pods: []string{"shop/web-1"}}},
		Existing:      []plan.Placement{{Pod: "shop/web-2", Node: "ip-10-0-1-7"}},
		Unplaced:      []plan.Unplaced{{Pod: "shop/db-0", Why: []string{"its volume is in eu-west-1c"}}},
		LowerBoundUSD: 0.032,
	}
	for _, line := range p.Lines() {
		fmt.Println(line)
	}
	fmt.Printf("at most %.1f%% above the lowest price\n", 100*p.BoundGap())
	fmt.Println("web-2 goes to", p.NodeByPod()["shop/web-2"])
	// Output:
	// launch spot m7g.large in eu-west-1b from pool general at 0.0340 USD/h (2 types possible) for shop/web-1
	// use ip-10-0-1-7 for shop/web-2
	// unschedulable shop/db-0: its volume is in eu-west-1c
	// at most 6.2% above the lowest price
	// web-2 goes to ip-10-0-1-7
}
