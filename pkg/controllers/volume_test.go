package controllers_test

import (
	"context"
	api "joiner/pkg/api/v1"
	"slices"
	"testing"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/testing/fake"
)

// withDisk is the pod with a volume of the zone.
func withDisk(zone string, p cluster.Pod) cluster.Pod {
	p.VolumeZones = [][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", zone)}}
	p.Volumes = []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: "default/data"}}
	return p
}

// resting is a world with pods that have volumes, at rest on nodes in the zone of these. Without a reason launches come
// to us-west-2a.
func resting(t *testing.T) *functions {
	t.Helper()
	f := &functions{w: newWorld()}
	f.w.ChangePool(func(p *cluster.Pool) {
		p.Hash, p.Disruption = "1", cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	f.w.Run("db", 3, withDisk("us-west-2b", pattern(1500, 3000)))
	f.rest(t, 4)
	noProblems(t, f.w)
	for _, zone := range zonesOf(t, f) {
		if zone != "us-west-2b" {
			t.Fatalf("a pod with a volume of us-west-2b runs in %s", zone)
		}
	}
	return f
}

func zonesOf(t *testing.T, f *functions) (out []string) {
	t.Helper()
	s, err := f.w.Ports(fake.Fault{}).ReadSnapshot(t.Context())
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
	f.w.Run("web", 1, pattern(100, 100))
	f.w.Run("large", 1, pattern(3000, 3000))
	p := f.w.Ports(fake.Fault{})
	for name, run := range map[string]func() error{
		"provision": func() error { return f.provision(p).Run(context.Background(), f.once()) },
		"lifecycle": func() error { return f.lifecycle(p).Run(context.Background(), f.once()) },
		"disrupt":   func() error { return f.disrupt(p).Run(context.Background(), f.once()) },
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
	for _, c := range f.w.Claims() {
		old[c.Name] = true
	}
	f.w.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	f.consolidate(t, 40)
	noProblems(t, f.w)
	if zones := zonesOf(t, f); slices.ContainsFunc(zones, func(z string) bool { return z != "us-west-2b" }) {
		t.Errorf("nodes in %v, want all in us-west-2b", zones)
	}
	for _, c := range f.w.Claims() {
		if old[c.Name] {
			t.Errorf("claim %s is of the old template still", c.Name)
		}
	}
}

// A node that EC2 wants left has its pod's replacement launched where its volume is.
func TestLeavingKeepsToVolumes(t *testing.T) {
	f := resting(t)
	f.w.Tick(20 * time.Minute)
	p := f.w.Ports(fake.Fault{})
	s, err := p.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave := interruption.ReplaceRequest{Cause: interruption.Scheduled, Since: f.w.Now(), Until: f.w.Now().Add(20 * time.Hour)}
	if _, err := p.AnnotateClaim(t.Context(), s.Claims[0], map[string]string{api.AnnotationReplaceRequested: leave.String()}); err != nil {
		t.Fatal(err)
	}
	f.rest(t, 15)
	noProblems(t, f.w)
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
	f := &functions{w: newWorld()}
	pod := withDisk("us-west-2b", pattern(1500, 3000))
	pod.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
	f.w.Run("agent", 1, pod)
	f.comeToRest(t)
	was := f.w.Instances()
	f.w.Attach(f.w.Nodes(), "pv-1", pod.Volumes[0].ID)
	f.w.DeleteClaims()
	f.rest(t, 4)
	if len(was) != 1 || runs(f.w, was[0].ID) {
		t.Errorf("of %v the instance is still there", was)
	}
}
