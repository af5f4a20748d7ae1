package lifecycle_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// quietCluster has so many nodes in service with thirty pods each, and nothing to do.
func quietCluster(nodes int) cluster.Snapshot {
	now := start()
	since := now.Add(-time.Hour)
	has := resources.List{CPU: 8000, Memory: 32 << 30, Pods: 58}
	s := cluster.Snapshot{Now: now, Rules: rules(), Pools: []cluster.Pool{{Name: "p", UID: "uid-p", Class: "default"}}}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		id := "aws:///us-west-2a/i-" + name
		labels := map[string]string{v1.LabelNodePool: "p", awsv1.LabelEC2NodeClass: "default", v1.LabelInstance: "i-" + name}
		c := cluster.Claim{Name: name, UID: "uid-" + name, Pool: "p", PoolUID: "uid-p", Class: "default", Created: since, Finalizer: true,
			Labels: labels, ProviderID: id, NodeName: name, Capacity: has, Allocatable: has,
			Annotations: map[string]string{awsv1.AnnotationInstanceTagged: "true", awsv1.AnnotationClusterNameTagged: "true"}}
		for _, k := range []string{v1.ConditionLaunched, v1.ConditionRegistered, v1.ConditionInitialized, v1.ConditionConsistentStateFound} {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: k, Status: "True", Reason: k, Since: since})
		}
		s.Claims = append(s.Claims, c)
		s.Nodes = append(s.Nodes, cluster.Node{Name: name, UID: "node-" + name, ProviderID: id, Created: since, Labels: labels, Finalizer: true,
			Ready: true, ReadySince: since, Capacity: has, Allocatable: has})
		s.Instances = append(s.Instances, cluster.Instance{ID: "i-" + name, Zone: "us-west-2a", State: "running", ClaimUID: c.UID, Launched: since})
		for k := range 30 {
			s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, k), NodeName: name, Phase: "Running", Ready: true})
		}
		s.Pools[0].Counted = s.Pools[0].Counted.Add(has).Add(resources.List{}.With(string(v1.LimitNodes), 1))
	}
	return s
}

// BenchmarkQuiet2000 measures what a pass of lifecycle decides in when nothing is to be done about 2,000 nodes with
// 60,000 pods.
func BenchmarkQuiet2000(b *testing.B) {
	s := quietCluster(2000)
	b.ReportAllocs()
	for b.Loop() {
		if p := lifecycle.Next(s); len(p.Actions) > 0 || p.Busy {
			b.Fatalf("%d actions, the first of them %v", len(p.Actions), p.Actions[0])
		}
	}
}

// A pass that has nothing to do copies no pods: of a large cluster that would be most of its memory.
func TestAQuietPassCopiesNoPods(t *testing.T) {
	s := quietCluster(200)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if p := lifecycle.Next(s); len(p.Actions) > 0 || p.Busy {
		t.Fatalf("%d actions", len(p.Actions))
	}
	runtime.ReadMemStats(&after)
	made, pods := after.TotalAlloc-before.TotalAlloc, uint64(len(s.Pods))*uint64(unsafe.Sizeof(cluster.Pod{}))
	if made >= pods/2 {
		t.Errorf("it allocates %d bytes, and the pods have %d", made, pods)
	}
}
