package verify_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/infra/local/lab/verify"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/workload"
)

func TestMain(m *testing.M) { os.Exit(client.RunTests(m)) }

// The nodes of other trials would take the pods, so tests share the plane one after the other, and each leaves it
// empty.
func options(t *testing.T, planner func(cluster.Snapshot) plan.Plan) verify.Options {
	t.Helper()
	f, err := workload.LoadWorkload(os.ReadFile, "testdata/small.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	p := client.ForTest(t)
	k, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { empty(t, k, f) })
	return verify.Options{
		Config: p.RESTConfig(), Workload: f, Catalog: c, Plan: planner, Rounds: 1, Idle: 15 * time.Second,
		Boot: 2 * time.Second, Warm: 200 * time.Millisecond,
		Log: t.Logf,
	}
}

// empty deletes what a trial of the workload made.
func empty(t *testing.T, k kubernetes.Interface, f workload.File) {
	t.Helper()
	ctx := context.Background()
	at := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, d := range f.DaemonSets {
		if err := k.AppsV1().DaemonSets(d.Namespace()).Delete(ctx, d.Name, at); err != nil {
			t.Error(err)
		}
	}
	for _, namespace := range []string{"default", "team-a", "kube-system"} {
		if err := k.CoreV1().Pods(namespace).DeleteCollection(ctx, at, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	if err := k.CoreV1().Nodes().DeleteCollection(ctx, at, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// Spread over zones with pods that run already, anti-affinity, a taint, labels of type and pool, priorities and
// DaemonSets: the scheduler puts every pod on the node that is held for it.
func TestTheSchedulerFollowsThePlan(t *testing.T) {
	o := options(t, binpack.Pods)
	r, err := verify.RunTrial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	show(t, r)
	got := r.Rounds[0]
	if r.HasFailed() || r.Pods != 120 || got.Scheduled != 120 || got.Pending != 0 || got.Unplaced != 0 || got.Moved != 0 || got.Held < 100 || got.Held == 120 {
		t.Errorf("the round is %+v, want all 120 pods scheduled where they were planned, some of them on the existing node before there was a plan", got)
	}
}

// A plan that lies: the tainted pool's nodes are of another pool, so their pods stay pending and the scheduler's words
// are reported. The next round plans for these pods alone, honestly.
func TestPendingPodsAreReportedAndPlannedAgain(t *testing.T) {
	round := 0
	o := options(t, func(s cluster.Snapshot) plan.Plan {
		p := binpack.Pods(s)
		round++
		for i := range p.Launches {
			if l := &p.Launches[i]; round == 1 && l.Pool == "system" {
				l.Pool, l.Labels = "general", nil
			}
		}
		return p
	})
	o.Rounds, o.Idle = 2, 10*time.Second // none of these pods has to wait for another
	o.Workload.Groups = slices.DeleteFunc(o.Workload.Groups, func(g workload.PodGroup) bool { return g.Name != "plain" && g.Name != "steady" })
	r, err := verify.RunTrial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	show(t, r)
	if len(r.Rounds) != 2 {
		t.Fatalf("%d rounds, want 2", len(r.Rounds))
	}
	first, second := r.Rounds[0], r.Rounds[1]
	if first.Stranded != 20 || first.Pending != 20 || first.Scheduled != 60 || len(first.Reasons) != 1 {
		t.Fatalf("the first round is %+v, want the 20 pods of group steady stranded for one reason", first)
	}
	why := first.Reasons[0]
	if why.Pods != 20 || !strings.HasPrefix(why.Pod, "team-a/steady-") || why.Why != "node(s) didn't match Pod's node affinity/selector" {
		t.Errorf("reason = %+v", why)
	}
	if alone := (verify.Report{Rounds: r.Rounds[:1]}); !alone.HasFailed() {
		t.Error("the first round alone is no failure, want one")
	}
	if r.HasFailed() || second.Pending != 0 || second.Scheduled != 80 || second.NewNodes == 0 || second.TotalUSD <= first.TotalUSD {
		t.Errorf("the second round is %+v, want all 80 pods scheduled on more nodes", second)
	}
}

// A plan that forgets a DaemonSet: its pod fits on none of the nodes, and is counted for each.
func TestDaemonsThatDoNotFitAreCounted(t *testing.T) {
	o := options(t, func(s cluster.Snapshot) plan.Plan {
		s.Daemons = slices.DeleteFunc(slices.Clone(s.Daemons), func(p cluster.Pod) bool { return p.Labels["app"] == "agent-of-general" })
		return binpack.Pods(s)
	})
	o.Idle = 10 * time.Second // the daemons wait in vain
	o.Workload.Groups = slices.DeleteFunc(o.Workload.Groups, func(g workload.PodGroup) bool { return g.Name != "plain" })
	o.Workload.DaemonSets[1].Pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity.MustParse("500")}
	r, err := verify.RunTrial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	show(t, r)
	if got := r.Rounds[0]; !r.HasFailed() || got.NewNodes == 0 || got.DaemonsPending != got.NewNodes || got.Stranded != 0 {
		t.Errorf("the round is %+v, want one pod of the DaemonSet pending for each new node, and no other pod", got)
	}
}

func show(t *testing.T, r verify.Report) {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
}
