package interruption_test

import (
	api "joiner.sh/pkg/api/v1"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// TestProvided: a drain may begin when every pod that needs another node has one that is there or that EC2 has accepted
// to make.
func TestProvided(t *testing.T) {
	waits := map[string]string{api.AnnotationDrainAfterReplacement: "2026-01-01T12:00:20Z"}
	node := func(name string) cluster.Node {
		return cluster.Node{Name: name, ProviderID: "aws:///a/i-" + name, Ready: true}
	}
	claim := func(name, id string) cluster.Claim {
		return cluster.Claim{Name: name, UID: "uid-" + name, ProviderID: id, Created: noon().Add(-time.Hour), Annotations: map[string]string{}}
	}
	going := claim("going", "aws:///a/i-old")
	going.Deleting, going.Annotations = noon().Add(-time.Second), waits
	pod := func(name, on string) cluster.Pod {
		return cluster.Pod{Namespace: "ns", Name: name, UID: "uid-" + name, NodeName: on, Phase: "Running", Owner: cluster.OwnerOther}
	}
	daemon := pod("daemon", "old")
	daemon.Owner = cluster.OwnerDaemonSet
	s := cluster.Snapshot{Now: noon(), Nodes: []cluster.Node{node("old"), node("other"), node("unmanaged")},
		Claims: []cluster.Claim{going, claim("other", "aws:///a/i-other"), claim("accepted", "aws:///a/i-new"), claim("stored", "")},
		Pods:   []cluster.Pod{pod("web", "old"), pod("db", "old"), daemon, pod("else", "other")}}
	place := func(pod, node string) plan.Placement { return plan.Placement{Pod: "ns/" + pod, Node: node} }
	launch := []plan.Launch{{Pods: []string{"ns/web", "ns/db"}}}
	for _, c := range []struct {
		name     string
		existing []plan.Placement
		launched []plan.Launch
		after    time.Duration
		want     int
	}{
		{"nothing is planned", nil, nil, 0, 0},
		{"one of two is placed", []plan.Placement{place("web", "other")}, nil, 0, 0},
		{"both on a node that is there", []plan.Placement{place("web", "other"), place("db", "other")}, nil, 0, 1},
		{"one on a node that is coming", []plan.Placement{place("web", "other"), place("db", "accepted")}, nil, 0, 1},
		{"one on a node that is only wanted", []plan.Placement{place("web", "other"), place("db", "stored")}, nil, 0, 0},
		{"both on one that EC2 has just accepted", nil, launch, 0, 1},
		{"in two batches", nil, []plan.Launch{{Pods: []string{"ns/db", "ns/else"}}, {Pods: []string{"ns/web"}}}, 0, 1},
		{"one of two in the batch", nil, []plan.Launch{{Pods: []string{"ns/db", "ns/else"}}}, 0, 0},
		{"when nobody waits any more", nil, launch, 20 * time.Second, 0},
	} {
		now := s
		now.Now = noon().Add(c.after)
		waiting := interruption.DrainsWaiting(now, plan.Plan{Existing: c.existing})
		got := waiting.AcceptLaunches(c.launched)
		if len(got) != c.want || len(got) == 1 && got[0].Name != "going" {
			t.Errorf("%s: the drains of %v may begin, want %d", c.name, got, c.want)
		}
		if again := waiting.AcceptLaunches(c.launched); len(again) > 0 {
			t.Errorf("%s: the drains of %v begin twice", c.name, again)
		}
		if interruption.AwaitsReplacement(now.Claims, now.Now) != (c.after == 0) {
			t.Errorf("%s: awaited is wrong", c.name)
		}
	}
}

// A claim that is not marked for deletion waits for nobody, and neither does one whose annotation nobody understands.
func TestFirstUntil(t *testing.T) {
	const until = "2026-01-01T12:00:20Z"
	for _, c := range []struct {
		text     string
		deleting time.Time
		want     time.Time
	}{
		{until, noon(), noon().Add(20 * time.Second)},
		{until, time.Time{}, time.Time{}},
		{"soon", noon(), time.Time{}},
		{"", noon(), time.Time{}},
	} {
		claim := cluster.Claim{Deleting: c.deleting, Annotations: map[string]string{api.AnnotationDrainAfterReplacement: c.text}}
		if got := interruption.FirstUntil(claim); !got.Equal(c.want) {
			t.Errorf("%q, deleting %v: %v, want %v", c.text, c.deleting, got, c.want)
		}
	}
}

// What is written down has whole seconds: pods stay for twenty at least all the same.
func TestFirstIsRoundedUp(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	claims := []cluster.Claim{{Name: "a", ProviderID: "aws:///us-west-2a/i-1"}}
	for after, want := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Nanosecond: 21 * time.Second, 990 * time.Millisecond: 21 * time.Second} {
		o := interruption.Interrupted(interruption.Notice{Kind: interruption.Spot, Instance: "i-1", Time: noon}, claims, noon.Add(after))
		if got := o.First.Sub(noon); got != want {
			t.Errorf("noticed %s after noon: pods stay until %s after it, want %s", after, got, want)
		}
	}
}
