package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"joiner.sh/pkg/model/cluster"
)

// Up to fifty pods are told of one by one, more of them by their nodes.
func TestOfManyPodsTheirNodesTell(t *testing.T) {
	objects := newIndex(cluster.Snapshot{Nodes: []cluster.Node{{Name: "n-0", UID: "u-0"}, {Name: "n-1", UID: "u-1"}}})
	told := func(pods int) (out []string) {
		var p podEvents
		for n := range pods {
			e := cluster.Event{Kind: "Pod", Namespace: "web", Name: fmt.Sprintf("p-%02d", n), Reason: "Evicted", Message: "Evicted pod: Interrupted"}
			if n == 0 {
				e.Reason, e.Message, e.Warning = "FailedDraining", "a webhook says no", true
			}
			p.recordOnce(fmt.Sprintf("n-%d", n%3), e)
		}
		for _, e := range p.events(objects) {
			out = append(out, fmt.Sprintf("%s %s %s %t %s: %s", e.Kind, e.Name, e.UID, e.Warning, e.Reason, e.Message))
		}
		return out
	}
	if got := told(50); len(got) != 50 || got[1] != "Pod p-01  false Evicted: Evicted pod: Interrupted" {
		t.Errorf("%d events of 50 pods, the second %q", len(got), got[1])
	}
	got := told(51)
	want := []string{"Node n-0 u-0 false Evicted: 16 pods: web/p-03,", "Node n-0 u-0 true FailedDraining: 1 pods: web/p-00: a webhook says no", "Node n-1 u-1 false Evicted: 17 pods: web/p-01,"}
	if len(got) != len(want) {
		t.Fatalf("events of 51 pods: %q", got)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("event %d is %q, want %q", i, got[i], w)
		}
	}
}
