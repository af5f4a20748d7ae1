package provision

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// A few pods wait for a cheaper plan for little more than a second, whatever part of a core the function has; many wait
// longer, and all less where the invocation ends soon.
func TestPackingTakesAPartOfACore(t *testing.T) {
	for _, c := range []struct {
		vcpus float64
		left  time.Duration
		pods  int
		want  int
	}{
		{0.289, time.Minute, 1, 256}, {0.579, time.Minute, 1, 512}, {1, time.Minute, 1, 1024},
		{0.289, time.Minute, 500, 1024}, {0.289, time.Minute, 2000, 2048}, {1, time.Minute, 50000, 8192},
		{0.289, 3 * time.Second, 1, 128}, {0, time.Minute, 1, 0}, {1, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.left > 0 {
				limited, cancel := context.WithTimeout(ctx, c.left)
				defer cancel()
				ctx = limited
			}
			controller := &Controller{Deps: controllers.Deps{Now: time.Now}, VCPUs: c.vcpus}
			pods := slices.Repeat([]cluster.Pod{{Namespace: "shop", Unscheduled: true, Phase: "Pending"}}, c.pods)
			if got := controller.packingMilliseconds(ctx, pods); got != c.want {
				t.Errorf("%v vCPU, %v left, %d pods: %d ms of a core, want %d", c.vcpus, c.left, c.pods, got, c.want)
			}
		})
	}
}

// Of a namespace with a thousand pods those count for the search that are about as many as others wait with.
func TestPodsOfOneNamespaceHaveOthersNotWait(t *testing.T) {
	pods := func(namespace string, n int, node string) []cluster.Pod {
		return slices.Repeat([]cluster.Pod{{Namespace: namespace, NodeName: node, Unscheduled: true, Phase: "Pending"}}, n)
	}
	daemon := pods("kube-system", 1, "")
	daemon[0].Owner = cluster.OwnerDaemonSet
	for _, c := range []struct {
		pods    []cluster.Pod
		want    int
		crowded bool
	}{
		{pods("jobs", 1000, ""), 1000, false},
		{slices.Concat(pods("jobs", 1000, ""), daemon), 1001, false}, // which no search is for
		{slices.Concat(pods("jobs", 1000, ""), pods("shop", 50, "node")), 1000, false},
		{slices.Concat(pods("evil", 1000, ""), pods("shop", 30, ""), pods("blog", 20, "")), 200, true},
		{slices.Concat(pods("jobs", 150, ""), pods("shop", 50, "")), 200, false},
	} {
		if got, crowded := countUnbound(c.pods); got != c.want || crowded != c.crowded {
			t.Errorf("%d, crowded %v, want %d, %v", got, crowded, c.want, c.crowded)
		}
	}
}
