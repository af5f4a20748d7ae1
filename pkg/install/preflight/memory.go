package preflight

import (
	"fmt"

	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/settings"
)

// checkMemory finds functions that have less memory than suits as many nodes as the cluster has. A stack that has it
// works: its passes end in order, and an alarm tells of them.
func (c *checker) checkMemory() {
	if c.plan.FunctionMemory <= 0 || !c.knows(TopicNodes) {
		return
	}
	want := settings.RecommendFunctionMemory(c.facts.Nodes, 0)
	if c.plan.FunctionMemory >= want {
		return
	}
	c.Add(findings.Warning, TopicNodes, fmt.Sprintf("the cluster has %d nodes, for which %d MiB of functionMemory are little: passes may end before they are done",
		c.facts.Nodes, c.plan.FunctionMemory),
		fmt.Sprintf(`write "functionMemory": %d into the context of cdk.json, more where nodes have more than 30 pods each, or "auto"`, want))
}

// ChooseMemory returns the functions' memory for reading the cluster, in MiB: what the plan says or, for settings.Auto,
// what suits the nodes, and never less than they have. A deployment while most nodes are away takes nothing from them.
func ChooseMemory(p StackPlan, f Facts) int {
	if p.FunctionMemory > 0 {
		return p.FunctionMemory
	}
	return max(settings.RecommendFunctionMemory(f.Nodes, 0), f.Memory)
}
