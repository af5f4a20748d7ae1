package launch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/nodeclaim/launch"
)

// In each subnet a node may take what the smallest type asked for there holds, whichever comes first.
func TestTaken(t *testing.T) {
	of := func(subnet string, pods int64) launch.Override { return launch.Override{SubnetID: subnet, Pods: pods} }
	o := launch.Order{Templates: []launch.Template{
		{Overrides: []launch.Override{of("a", 58), of("b", 29)}}, {Overrides: []launch.Override{of("a", 29), of("b", 110), of("c", 8)}}, {Overrides: []launch.Override{of("a", 110)}},
	}}
	if diff := cmp.Diff(map[string]int64{"a": 29, "b": 29, "c": 8}, o.TakenAddresses()); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}
