package doctor

import (
	"fmt"
	"strings"

	"joiner.sh/pkg/cli/bill"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/settings"
)

// checkCost says when the stack costs more than the pods of a Karpenter would. What it is made of stands in infra/costs.md.
func (e *examination) checkCost() {
	const check = "cost"
	memory := e.functionMemory()
	if memory == 0 || e.f.Nodes == 0 {
		return
	}
	lines, err := bill.Estimate(bill.Usual(), bill.Cluster{Nodes: e.f.Nodes, NodeHours: nodeHours, Pools: max(1, len(e.f.Pools)), MemoryMiB: memory})
	if err != nil {
		e.AddUnknown(check, err.Error())
		return
	}
	usd := bill.Sum(lines)
	if usd <= bill.KarpenterMost {
		e.Add(findings.Fine, check, fmt.Sprintf("about %.0f USD a month for %d nodes with %d MiB", usd, e.f.Nodes, memory), "")
		return
	}
	e.Add(findings.Warning, check, fmt.Sprintf("about %.0f USD a month for %d nodes with %d MiB, more than the %d to %d USD of Karpenter's two pods",
		usd, e.f.Nodes, memory, bill.KarpenterLeast, bill.KarpenterMost),
		"lower functionMemory if passes end in time without it, and set tracing and dashboard to false; infra/costs.md says what it is made of")
}

// functionMemory returns the memory of provision, in MiB; 0 if it is not known.
func (e *examination) functionMemory() (memory int) {
	for _, f := range e.f.Functions.List {
		if f.Found && strings.HasSuffix(f.Name, "-provision") {
			memory = f.Memory
		}
	}
	return memory
}

// checkMemory says when the functions have less memory than suits a cluster of this size.
func (e *examination) checkMemory() {
	const check = "functionMemory"
	memory := e.functionMemory()
	if memory == 0 || e.f.Nodes == 0 {
		return
	}
	want := settings.RecommendFunctionMemory(e.f.Nodes, e.f.Pods)
	if memory >= want {
		e.Add(findings.Fine, check, fmt.Sprintf("%d MiB suit %d nodes and %d pods", memory, e.f.Nodes, e.f.Pods), "")
		return
	}
	mend := fmt.Sprintf("set functionMemory in cdk.json to %d", want)
	if settings.RecommendFunctionMemory(e.f.Nodes, 0) >= want { // the preflight counts nodes alone
		mend += ", or to auto, and deploy again"
	}
	e.Add(findings.Warning, check, fmt.Sprintf("%d MiB are little for %d nodes and %d pods: passes may end before they are done", memory, e.f.Nodes, e.f.Pods),
		mend)
}

// checkCeiling says when the cluster has as many nodes as it may, or nearly.
func checkCeiling(e *examination) {
	const check = "maxNodes"
	most := 0
	for _, f := range e.f.Functions.List {
		most = max(most, f.MaxNodes)
	}
	switch mend := "raise maxNodes in cdk.json and deploy again, or find out who asks for so many: joiner status"; {
	case most == 0:
	case e.f.Nodes >= most:
		e.Add(findings.Warning, check, fmt.Sprintf("there are %d nodes, and it is %d: nothing more is launched", e.f.Nodes, most), mend)
	case float64(e.f.Nodes) >= tight*float64(most):
		e.Add(findings.Warning, check, fmt.Sprintf("there are %d nodes, and nothing is launched beyond %d", e.f.Nodes, most), mend)
	default:
		e.Add(findings.Fine, check, fmt.Sprintf("there are %d nodes, and it is %d", e.f.Nodes, most), "")
	}
}

// nodeHours is the number of hours that a node is assumed to live.
const nodeHours = 10
