package whatif

import (
	"strings"
	"testing"

	"joiner.sh/pkg/testing/scenario"
)

// A change by which the pod takes what another pod would get says so, and stands behind those that do not.
func TestOthersThatLoseTheirNode(t *testing.T) {
	w := scenario.Scripted(t, "type m.x cpu=8000 mem=32768 milliusd=384", "pool p\nlimit cpu 8000",
		"pods small n=4 cpu=1700 mem=2048", "pods big cpu=7000 mem=8192\nselect disk=ssd")
	changes := ForPod(w.Snapshot, w.Market, "default/big-1", Limits{}).Changes
	const told = ", but default/small-4 gets no node any more"
	for i, want := range []struct {
		has  string
		told bool
	}{{"change spec.limits.cpu of NodePool p from 8 to 16", false}, {"from 7 to 2900m", true}, {"from 7 to 2900m", true}} {
		if len(changes) != 3 || !strings.Contains(changes[i].String(), want.has) ||
			strings.HasSuffix(changes[i].String(), told) != want.told {
			t.Fatalf("change %d: want %q, told of another pod: %t, in %v", i+1, want.has, want.told, changes)
		}
	}
}
