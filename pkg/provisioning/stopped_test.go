package provisioning_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/faults"
)

const (
	onePool = `
pool default
----
`
	onDemandPool = `
pool default
require karpenter.sh/capacity-type In on-demand
----
`
)

// withBuffer has the pods whose names begin so stand for what a buffer of stopped capacity keeps.
func withBuffer(s cluster.Snapshot, prefix string) cluster.Snapshot {
	b := cluster.StoppedBuffer{Namespace: "default", Name: prefix}
	var rest []cluster.Pod
	for _, p := range s.Pods {
		if strings.HasPrefix(p.Name, prefix) {
			p.Virtual = true
			b.Pods = append(b.Pods, p)
		} else {
			rest = append(rest, p)
		}
	}
	s.Pods, s.Stopped = rest, append(s.Stopped, b)
	return s
}

// withStopped adds a claim of stopped capacity in zone us-west-2a; change makes it another.
func withStopped(t *testing.T, s cluster.Snapshot, name, kind string, change func(*cluster.Claim)) cluster.Snapshot {
	t.Helper()
	types := binpack.ResolveOfferings(s)(s.Classes[0].Name)
	i := slices.IndexFunc(types, func(t instancetypes.Type) bool { return t.Name == kind })
	if i < 0 {
		t.Fatalf("nobody sells %s", kind)
	}
	labels := types[i].Requirements.Labels()
	maps.Copy(labels, map[string]string{v1.LabelNodePool: "default", instancetypes.LabelZone: "us-west-2a", instancetypes.LabelCapacityType: "on-demand"})
	c := cluster.Claim{Name: name, UID: "uid-" + name, Pool: "default", Class: s.Classes[0].Name, ProviderID: "aws:///us-west-2a/i-" + name, Created: s.Now.Add(-time.Hour),
		Labels: labels, Requirements: s.Pools[0].Requirements, Capacity: types[i].Capacity, Allocatable: types[i].Allocatable,
		Annotations: map[string]string{v1.AnnotationStoppedCapacity: "true"},
		Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True", Since: s.Now.Add(-time.Hour)},
			{Type: v1.ConditionRegistered, Status: "False", Reason: "Stopped", Since: s.Now.Add(-time.Hour)},
			{Type: v1.ConditionStopped, Status: "True", Reason: "Stopped", Since: s.Now.Add(-time.Hour)}}}
	if change != nil {
		change(&c)
	}
	s.Claims = append(slices.Clone(s.Claims), c)
	s.Rules.RegistrationTimeout = 15 * time.Minute
	return s
}

// outline is the plan without prices, types and zones.
func outline(p plan.Plan) []string {
	out := []string{}
	for _, l := range p.Launches {
		out = append(out, "launch for "+plan.NamePods(l.Pods))
	}
	for _, l := range p.Fixed {
		capacity, _ := l.Requirements.Get(instancetypes.LabelCapacityType)
		one, _ := capacity.Single()
		out = append(out, strings.TrimSpace("launch "+one+" to be stopped "+strings.Join(l.Pods, ",")+l.Annotations[v1.AnnotationNominatedPods]))
		if !l.ForStoppedCapacity() {
			out = append(out, "for a static pool")
		}
	}
	for _, s := range p.Starts() {
		out = append(out, strings.TrimSpace("start "+s.Claim+" for "+plan.NamePods(s.Pods)))
	}
	for _, r := range p.Removals {
		why, _, _ := strings.Cut(r.Why, ":")
		out = append(out, "remove "+r.Claim+": "+why)
	}
	for _, u := range p.Unplaced {
		out = append(out, "unplaced "+u.Pod)
	}
	if p.Stopped != nil {
		for _, e := range p.Stopped.Placed {
			out = append(out, e.Node+" is kept for "+e.Pod)
		}
		for _, u := range p.Stopped.Unplaced {
			out = append(out, "nothing is kept for "+u.Pod)
		}
	}
	return out
}

// A buffer that the decision fails about is not filled, and no node goes that it may have use for. The other is filled
// and the NodePools are not blamed.
func TestABufferMayFail(t *testing.T) {
	s := read(t, onDemandPool+"pods spare cpu=700 mem=900\n----\npods evil cpu=900 mem=900\n----\n")
	s = withBuffer(withBuffer(withStopped(t, withStopped(t, s, "c1", "m5.large", nil), "c2", "c5.xlarge", nil), "spare"), "evil")
	got := provisioning.Decide(plantAt(s, faults.Fault{Stage: cluster.StagePlace, About: "default/evil"}))
	if diff := gocmp.Diff([]string{"c1 is kept for default/spare-1"}, outline(got.Plan)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := got.Plan.Faults; len(f) != 1 || f[0].Kind != cluster.BufferPart || f[0].Name != "default/evil" || got.Plan.Stopped.Filled {
		t.Errorf("filled %v, faults %+v", got.Plan.Stopped.Filled, f)
	}
}

// The stopped nodes of a NodePool stay that the decision fails about.
func TestAPoolOfStoppedNodesMayFail(t *testing.T) {
	s := read(t, onDemandPool+"pods web cpu=3900 mem=900\n----\npods spare cpu=900 mem=900\n----\n")
	s = withBuffer(withStopped(t, s, "c1", "m5.large", nil), "spare")
	got := provisioning.Decide(plantAt(s, faults.Fault{Stage: cluster.StagePools, Pool: "default"}))
	if f := got.Plan.Faults; len(f) != 1 || f[0].Kind != cluster.PoolPart || len(got.Plan.Removals) > 0 {
		t.Errorf("removals %v, faults %+v", got.Plan.Removals, f)
	}
}

func TestStoppedCapacity(t *testing.T) {
	drifted := func(c *cluster.Claim) {
		c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionDrifted, Status: "True", Reason: "AMIDrift"})
	}
	state := func(status, reason string) func(*cluster.Claim) {
		return func(c *cluster.Claim) {
			c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionStopped, Status: status, Reason: reason})
		}
	}
	for _, c := range []struct {
		name, world string
		build       func(cluster.Snapshot) cluster.Snapshot
		want        []string
	}{
		{"nothing is kept yet", onePool + "pods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot { return withBuffer(s, "spare") },
			[]string{"launch on-demand to be stopped"}},
		{"all is kept", onePool + "pods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, s, "c1", "m5.large", nil), "spare")
			},
			[]string{"c1 is kept for default/spare-1", "c1 is kept for default/spare-2"}},
		{"a node that warms is kept and is no place", onePool + "pods spare n=2 cpu=700 mem=900\n----\npods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, s, "c1", "m5.large", state("Unknown", v1.ReasonWarming)), "spare")
			},
			[]string{"launch for default/web-1"}},
		{"one that stops is no place", onePool + "pods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, s, "c1", "m5.large", state("Unknown", v1.ReasonStopping))
			},
			[]string{"launch for default/web-1"}},
		{"pods take it", onDemandPool + "pods web n=2 cpu=700 mem=900\n----\npods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, s, "c1", "m5.large", nil), "spare")
			},
			[]string{"start c1 for default/web-1,default/web-2"}},
		{"pods that do not fit get a launch as well", onDemandPool + "pods web n=3 cpu=900 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "m5.large", nil) },
			[]string{"launch for default/web-3", "start c1 for default/web-1,default/web-2"}},
		{"one that was started is filled again", onePool + "pods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, s, "c1", "m5.large", state("False", v1.ReasonStarting)), "spare")
			},
			[]string{"launch on-demand to be stopped"}},
		{"much dearer than spot for one pod", onePool + "pods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "c5.xlarge", nil) },
			[]string{"launch for default/web-1"}},
		{"not much dearer for many", onePool + "pods web n=4 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "c5.xlarge", nil) },
			[]string{"start c1 for default/web-1,default/web-2,default/web-3,default/web-4"}},
		{"the dear one of two is left out", onDemandPool + "pods web n=2 cpu=1500 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, withStopped(t, s, "c1", "m5.large", nil), "c2", "m5.large", nil)
			},
			[]string{"start c1 for default/web-1", "start c2 for default/web-2"}},
		{"no faster than a minute allows", onDemandPool + "pods web n=3 cpu=1500 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s.Rules.Ceiling.NodesPerMinute = 2
				return withStopped(t, withStopped(t, withStopped(t, s, "c1", "m5.large", nil), "c2", "m5.large", nil), "c3", "m5.large", nil)
			},
			[]string{"start c1 for default/web-1", "start c2 for default/web-2", "unplaced default/web-3"}},
		{"what starts counts for what is launched", onDemandPool + "pods web n=3 cpu=1500 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s.Rules.Ceiling.NodesPerMinute = 1
				return withStopped(t, s, "c1", "m5.large", nil)
			},
			[]string{"start c1 for default/web-1", "unplaced default/web-2", "unplaced default/web-3"}},
		{"no faster than the API server takes it", onDemandPool + "pods web n=2 cpu=1500 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s.Pace = 1
				return withStopped(t, withStopped(t, s, "c1", "m5.large", nil), "c2", "m5.large", nil)
			},
			[]string{"start c1 for default/web-1", "unplaced default/web-2"}},
		{"what started a moment ago counts", onDemandPool + "pods web cpu=1500 mem=900\n----\npods spare cpu=1500 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s.Rules.Ceiling.NodesPerMinute = 1
				s = withStopped(t, s, "c1", "m5.large", nil)
				return withBuffer(withStopped(t, s, "c2", "m5.large", func(c *cluster.Claim) {
					state("False", v1.ReasonStarting)(c)
					c.Annotations[v1.AnnotationStartRequested] = s.Now.Add(-time.Minute / 2).Format(time.RFC3339)
				}), "spare")
			},
			[]string{"unplaced default/web-1", "c1 is kept for default/spare-1"}},
		{"no other place", onePool[:len(onePool)-5] + "limit cpu 4000\n----\npods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "c5.xlarge", nil) },
			[]string{"start c1 for default/web-1"}},
		{"it counts for limits", onePool[:len(onePool)-5] + "limit cpu 4000\n----\npods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, s, "c1", "c5.xlarge", state("Unknown", v1.ReasonStopping))
			},
			[]string{"remove c1: no CapacityBuffer has use for its stopped capacity", "unplaced default/web-1"}},
		{"EC2 refused to start it", onDemandPool + "pods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s.Unavailable = []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "us-west-2a"}, Until: s.Now.Add(time.Minute)}}
				return withStopped(t, s, "c1", "m5.large", nil)
			},
			[]string{"launch for default/web-1"}},
		{"whoever asked for its start died", onDemandPool + "pods web n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s = withStopped(t, s, "c1", "m5.large", nil)
				return withStopped(t, s, "c2", "m5.large", func(c *cluster.Claim) {
					c.Annotations[v1.AnnotationStartRequested] = s.Now.Add(-time.Minute).Format(time.RFC3339)
				})
			},
			[]string{"start c2 for default/web-1,default/web-2"}},
		{"its start was asked for long ago", onePool,
			func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, s, "c1", "m5.large", func(c *cluster.Claim) {
					c.Annotations[v1.AnnotationStartRequested] = s.Now.Add(-time.Hour).Format(time.RFC3339)
				})
			},
			[]string{"remove c1: its instance did not start within 5m0s"}},
		{"pods do not wait for one that does not start", onDemandPool + "pods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, s, "c1", "m5.large", func(c *cluster.Claim) {
					c.Annotations[v1.AnnotationStartRequested] = s.Now.Add(-5 * time.Minute).Format(time.RFC3339)
				})
			},
			[]string{"launch for default/web-1"}},
		{"a drifted one is replaced first", onePool + "pods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, s, "c1", "m5.large", drifted), "spare")
			},
			[]string{"launch on-demand to be stopped"}},
		{"and ended then", onePool + "pods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s = withStopped(t, s, "c1", "m5.large", drifted)
				return withBuffer(withStopped(t, s, "c2", "m5.large", state("Unknown", v1.ReasonWarming)), "spare")
			},
			[]string{"remove c1: it has drifted", "c2 is kept for default/spare-1", "c2 is kept for default/spare-2"}},
		{"or where limits leave no room for two", onePool[:len(onePool)-5] + "limit nodes 1\n----\npods spare n=2 cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, s, "c1", "m5.large", drifted), "spare")
			},
			[]string{"remove c1: it has drifted", "nothing is kept for default/spare-1", "nothing is kept for default/spare-2"}},
		{"a drifted one is not started", onDemandPool + "pods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "m5.large", drifted) },
			[]string{"launch for default/web-1"}},
		{"a NodeRollout tries another revision", onDemandPool + "pods web cpu=700 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				s.Pools[0].Rollout = &cluster.PoolRollout{Name: "r", Good: "good", Try: "next", DriftTo: "next"}
				return withStopped(t, s, "c1", "m5.large", func(c *cluster.Claim) {
					drifted(c)
					c.Annotations[v1.AnnotationNodeRevision] = "good"
				})
			},
			[]string{"start c1 for default/web-1"}},
		{"certificates run out", onePool,
			func(s cluster.Snapshot) cluster.Snapshot {
				return withStopped(t, s, "c1", "m5.large", func(c *cluster.Claim) { c.Conditions[2].Since = s.Now.Add(-31 * 24 * time.Hour) })
			},
			[]string{"remove c1: it has been stopped for 720h0m0s, longer than certificates of kubelets are relied on"}},
		{"the buffer is gone", onePool,
			func(s cluster.Snapshot) cluster.Snapshot { return withStopped(t, s, "c1", "m5.large", nil) },
			[]string{"remove c1: no CapacityBuffer has use for its stopped capacity"}},
		{"the buffer shrinks", onePool + "pods spare cpu=1500 mem=900\n----\n",
			func(s cluster.Snapshot) cluster.Snapshot {
				return withBuffer(withStopped(t, withStopped(t, s, "c1", "m5.large", nil), "c2", "m5.large", nil), "spare")
			},
			[]string{"remove c2: no CapacityBuffer has use for its stopped capacity", "c1 is kept for default/spare-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.build(read(t, c.world))
			got := provisioning.Decide(s)
			if len(got.Plan.Faults) > 0 {
				t.Fatalf("faults: %v", got.Plan.Faults)
			}
			if diff := gocmp.Diff(c.want, outline(got.Plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s\n%s", diff, got.Plan)
			}
			if again := provisioning.Decide(s); gocmp.Diff(got, again) != "" {
				t.Error("the same snapshot, another plan")
			}
		})
	}
}

// A pool that sells spot alone is told by name and field, in the condition of the buffer.
func TestStoppedCapacityOfSpot(t *testing.T) {
	s := withBuffer(read(t, "\npool default\nrequire karpenter.sh/capacity-type In spot\n----\npods capacity-buffer-spare cpu=700 mem=900\n----\n"), "capacity-buffer-spare")
	got := provisioning.Decide(s).Plan
	want := "NodePool default: karpenter.sh/capacity-type of spec.template.spec.requirements leaves no on-demand capacity, and EC2 cannot stop other instances"
	if u := got.Stopped.Unplaced; len(u) != 1 || !slices.Contains(u[0].Why, want) || len(got.AllLaunches()) > 0 {
		t.Errorf("unplaced %v, want %q", u, want)
	}
	strategy, one := v1beta1.StrategyStopped, int32(1)
	o := &v1beta1.CapacityBuffer{Spec: v1beta1.CapacityBufferSpec{ProvisioningStrategy: &strategy, Replicas: &one,
		PodTemplateRef: &v1beta1.LocalObjectRef{Name: "web"}}}
	o.Namespace, o.Name = "default", "spare"
	room := buffers.RoomOf(s, got)
	buffers.UpdateStatus(buffers.Buffer{Object: o, Template: &cluster.Pod{}, Refusals: room.Refusals}, room.Placed, s.Now)
	k := meta.FindStatusCondition(o.Status.Conditions, v1beta1.ConditionProvisioning)
	if k == nil || k.Status != "False" || !strings.Contains(k.Message, want) {
		t.Errorf("the buffer says %+v, want %q", k, want)
	}
}

// Without buffers and stopped nodes nothing of it is decided.
func TestNoStoppedCapacity(t *testing.T) {
	if got := provisioning.Decide(read(t, onePool+"pods web cpu=700 mem=900\n----\n")); got.Plan.Stopped != nil {
		t.Errorf("decided: %+v", got.Plan.Stopped)
	}
}

// A node of stopped capacity runs the same daemons as others, and room for them is kept free on it.
func TestStoppedCapacityKeepsRoomForDaemons(t *testing.T) {
	s := withBuffer(read(t, onePool+"pods spare n=2 cpu=900 mem=900\n----\n"), "spare")
	s = withStopped(t, s, "c1", "m5.large", nil)
	if got := outline(provisioning.Decide(s).Plan); len(got) != 2 {
		t.Fatalf("without daemons: %v", got)
	}
	s.Daemons = []cluster.Pod{{Namespace: "kube-system", Name: "agent", Owner: cluster.OwnerDaemonSet, Need: resources.List{CPU: 200, Pods: 1}}}
	if got := outline(provisioning.Decide(s).Plan); !slices.Contains(got, "launch on-demand to be stopped") {
		t.Errorf("with daemons: %v", got)
	}
}

// How many volumes a stopped node can attach nobody knows, as of any node on its way: it is started for pods that fit
// by their requests. As soon as its driver tells, what it cannot attach gets a launch, and what it can stays planned
// for it.
func TestStoppedCapacityOfPodsWithVolumes(t *testing.T) {
	s := withStopped(t, read(t, onDemandPool+"pods db n=4 cpu=100 mem=100\nattach ebs\n----\n"), "c1", "m5.large", nil)
	if diff := gocmp.Diff([]string{"start c1 for default/db-1,default/db-2,default/db-3,default/db-4"}, outline(provisioning.Decide(s).Plan)); diff != "" {
		t.Errorf("while it is stopped (-want +got):\n%s", diff)
	}
	c := &s.Claims[len(s.Claims)-1]
	c.NodeName = "n1"
	for _, k := range []cluster.Condition{{Type: v1.ConditionStopped, Status: "False", Reason: v1.ReasonStarting}, {Type: v1.ConditionRegistered, Status: "True"}} {
		k.Since = s.Now
		c.Conditions = cluster.WithCondition(c.Conditions, k)
	}
	n := cluster.Node{Name: "n1", ProviderID: c.ProviderID, Labels: maps.Clone(c.Labels), Ready: true, Capacity: c.Capacity, Allocatable: c.Allocatable}
	n.Labels[v1.LabelRegistered], n.Labels["kubernetes.io/hostname"] = "true", "n1"
	s.Nodes = append(s.Nodes, n)
	outlineWith := func(limits map[string]int64) []string {
		s.Nodes[len(s.Nodes)-1].VolumeLimits = limits
		got := provisioning.Decide(s).Plan
		out := outline(got)
		for _, e := range got.Existing {
			out = append(out, e.Pod+" to "+e.Node)
		}
		return out
	}
	all := []string{"default/db-1 to n1", "default/db-2 to n1", "default/db-3 to n1", "default/db-4 to n1"}
	if diff := gocmp.Diff(all, outlineWith(nil)); diff != "" {
		t.Errorf("before its driver tells (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(append([]string{"launch for default/db-4"}, all[:3]...), outlineWith(map[string]int64{"ebs": 3})); diff != "" {
		t.Errorf("once its driver tells (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"launch for default/db-1,default/db-2,default/db-3,default/db-4"}, outlineWith(map[string]int64{"ebs": 0})); diff != "" {
		t.Errorf("where its driver can attach none (-want +got):\n%s", diff)
	}
}
