package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"joiner/infra/local/env"
)

// Three large nodes become three small ones in one command, though the budget lets one go at a time: with disruptionWaves all three are
// closed when their replacements are ready, and they are drained one after the other.
func TestAConsolidationGoesInWaves(t *testing.T) {
	w := start(t, func(o *env.Options) { o.Env["DISRUPTION"], o.Env["DISRUPTION_WAVES"] = "act", "3" })
	types := func(names string) text {
		return text(strings.Replace(pool("default", `{key: node.kubernetes.io/instance-type, operator: In, values: [`+names+`]}`), "values: [spot, on-demand]", "values: [on-demand]", 1) + `
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "1"}]}
`)
	}
	w.apply(types("m5.2xlarge"), class{name: "default"})
	w.tick("refresh")
	w.apply(deployment{name: "any", replicas: 3, cpu: "1", alone: true})
	w.exist("any", 3)
	w.serve("any", 3)
	if n := len(w.living()); n != 3 {
		t.Fatalf("%d instances for 3 pods that keep each other away, want 3", n)
	}
	w.apply(types("m5.large, m5.2xlarge"))
	w.tick("refresh")
	closed, most := 0, 0
	w.until("small nodes are all that is left, and every pod runs", func() (string, bool) {
		shut, leaving, small := 0, 0, 0
		for _, n := range w.nodes() {
			for _, taint := range n.Spec.Taints {
				if taint.Key == "karpenter.sh/disrupted" {
					shut++
				}
			}
		}
		for _, c := range w.claims() {
			if c.GetDeletionTimestamp() != nil && status(c, "InstanceTerminating")["status"] != "True" {
				leaving++
			}
		}
		living := w.living()
		for _, i := range living {
			if i.Type == "m5.large" {
				small++
			}
		}
		closed, most = max(closed, shut), max(most, leaving)
		return fmt.Sprintf("%d instances, %d of them small, %d nodes closed, %d claims leaving, %d pods up", len(living), small, shut, leaving, w.up("any")),
			len(living) == small && small == 3 && w.up("any") == 3
	}, "disrupt", "provision", "lifecycle")
	w.settled()
	if most > 1 {
		t.Errorf("%d nodes were drained at a time, the budget lets 1", most)
	}
	begun := regexp.MustCompile(`begin Underutilized: [^ ]*,[^ ]*,[^ ]* for `).FindAllString(w.logs.String(), -1)
	ended := regexp.MustCompile(`finish [^ ,]*: Underutilized`).FindAllString(w.logs.String(), -1)
	if len(begun) != 1 || len(ended) < 3 {
		t.Errorf("it began %q and finished %q; want one command about three nodes, finished one by one; %d nodes were seen closed", begun, ended, closed)
	}
}
