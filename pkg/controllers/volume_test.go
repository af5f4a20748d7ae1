package controllers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// withDisk is the pod with a volume of the zone.
func withDisk(zone string, p cluster.Pod) cluster.Pod {
	p.VolumeZones = [][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", zone)}}
	p.Volumes = []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: "default/data"}}
	return p
}

// resting is a world with pods that have volumes, at rest on nodes in the zone of these. Without a reason launches come
// to us-west-2a.
func resting(t *testing.T) *controllertest.Functions {
	t.Helper()
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Hash, p.Disruption = "1", cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	f.World.RunApp("db", 3, withDisk("us-west-2b", controllertest.PodOf(1500, 3000)))
	f.Rest(t, 4)
	controllertest.NoProblems(t, f.World)
	for _, zone := range zonesOf(t, f) {
		if zone != "us-west-2b" {
			t.Fatalf("a pod with a volume of us-west-2b runs in %s", zone)
		}
	}
	return f
}

func zonesOf(t *testing.T, f *controllertest.Functions) (out []string) {
	t.Helper()
	s, err := f.World.Ports(fake.Fault{}).ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Claims {
		out = append(out, c.Labels["topology.kubernetes.io/zone"])
	}
	return out
}

// However many pods have volumes: nobody reads these while nothing moves, neither when nothing is to do nor for a pod
// that has none.
func TestVolumesAreNotReadAtRest(t *testing.T) {
	f := resting(t)
	f.World.RunApp("web", 1, controllertest.PodOf(100, 100))
	f.World.RunApp("large", 1, controllertest.PodOf(3000, 3000))
	p := f.World.Ports(fake.Fault{})
	for name, run := range map[string]func() error{
		"provision": func() error { return f.Provision(p).Run(context.Background(), f.Once()) },
		"lifecycle": func() error { return f.Lifecycle(p).Run(context.Background(), f.Once()) },
		"disrupt":   func() error { return f.Disrupt(p).Run(context.Background(), f.Once()) },
	} {
		if err := run(); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(p.Calls(), "read volumes") {
			t.Errorf("%s reads volumes", name)
		}
	}
	if calls := p.Calls(); !slices.Contains(calls, "read snapshot") || !slices.Contains(calls, "create claim") {
		t.Errorf("a node is to be launched, and the calls are %v", calls)
	}
}

// A node that drifted is replaced where the volume of its pod is, once and for all.
func TestDriftKeepsToVolumes(t *testing.T) {
	f := resting(t)
	old := map[string]bool{}
	for _, c := range f.World.Claims() {
		old[c.Name] = true
	}
	f.World.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	f.Consolidate(t, 40)
	controllertest.NoProblems(t, f.World)
	if zones := zonesOf(t, f); slices.ContainsFunc(zones, func(z string) bool { return z != "us-west-2b" }) {
		t.Errorf("nodes in %v, want all in us-west-2b", zones)
	}
	for _, c := range f.World.Claims() {
		if old[c.Name] {
			t.Errorf("claim %s is of the old template still", c.Name)
		}
	}
}

// A node that EC2 wants left has its pod's replacement launched where its volume is.
func TestLeavingKeepsToVolumes(t *testing.T) {
	f := resting(t)
	f.World.Advance(20 * time.Minute)
	p := f.World.Ports(fake.Fault{})
	s, err := p.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave := interruption.ReplaceRequest{Cause: interruption.Scheduled, Since: f.World.Now(), Until: f.World.Now().Add(20 * time.Hour)}
	if _, err := p.AnnotateClaim(t.Context(), s.Claims[0], map[string]string{api.AnnotationReplaceRequested: leave.String()}); err != nil {
		t.Fatal(err)
	}
	f.Rest(t, 15)
	controllertest.NoProblems(t, f.World)
	after, err := p.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(after.Claims, func(c cluster.Claim) bool { return c.UID == s.Claims[0].UID }) {
		t.Error("the node was not left")
	}
	if zones := zonesOf(t, f); slices.ContainsFunc(zones, func(z string) bool { return z != "us-west-2b" }) {
		t.Errorf("nodes in %v, want all in us-west-2b", zones)
	}
}

// The volume of a pod that the drain leaves on its node keeps nobody waiting: whose it is, is read when volumes are
// waited for.
func TestVolumesOfPodsThatStayAreNotWaitedFor(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	pod := withDisk("us-west-2b", controllertest.PodOf(1500, 3000))
	pod.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
	f.World.RunApp("agent", 1, pod)
	f.ComeToRest(t)
	was := f.World.Instances()
	f.World.AttachVolume(f.World.Nodes(), "pv-1", pod.Volumes[0].ID)
	f.World.DeleteClaims()
	f.Rest(t, 4)
	if len(was) != 1 || runs(f.World, was[0].ID) {
		t.Errorf("of %v the instance is still there", was)
	}
}
