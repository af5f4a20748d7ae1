package roundtrip_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/env"
)

// deployed is the Deployment that the process outside of the cluster stands for.
const deployed = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: karpenter, namespace: kube-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: karpenter}}
  template:
    metadata: {labels: {app: karpenter}}
    spec:
      containers:
      - name: controller
        image: public.ecr.aws/karpenter/controller:1.15.1
        env: [{name: CLUSTER_NAME, value: demo}, {name: BATCH_IDLE_DURATION, value: 1s}]
`

// Karpenter makes the nodes, Joiner takes them over and makes more, Karpenter takes all of them over again and ends them:
// no move replaces a node, though the two know the CA of the cluster as different bytes. Who leads sees the edit of a
// class, on the nodes of both. Nothing is left over.
func TestKarpenterToJoinerAndBack(t *testing.T) {
	if *program == "" {
		t.Skip("no program of Karpenter is given: make round-trip builds one")
	}
	w, began := start(t), time.Now()
	say := func(format string, args ...any) {
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	all := randomClasses(rand.New(rand.NewPCG(*seed, 0)), *classes)
	w.Cloud.PutInstanceProfile("profile-of-the-team", "KarpenterNodeRole-demo")
	profiles := w.Cloud.InstanceProfiles()

	w.apply(deployed)
	k := w.startKarpenter()
	say("Karpenter leads")
	for _, c := range all {
		w.apply(c.manifest())
	}
	w.served(len(all))
	first := w.holding()
	say("Karpenter launched %d nodes for %d classes", len(w.listed(env.NodeClaims())), len(all))
	w.round()
	w.same("while Karpenter leads", first)

	w.stopKarpenter(k)
	say("Karpenter is gone")
	if code, out := w.joiner("migrate", "--apply"); code != 0 {
		t.Errorf("joiner migrate: exit %d\n%s", code, out)
	}
	w.rounds(leakAge + 5*time.Second)
	w.same("Joiner took over", first)
	say("Joiner leads")
	for _, c := range all {
		w.scale(c.name, 2)
	}
	w.served(2*len(all), "provision", "lifecycle")
	w.rounds(leakAge + 5*time.Second)
	both := w.holding()
	kept := map[string]string{}
	for name := range first {
		kept[name] = both[name]
	}
	for _, d := range changed(first, kept) {
		t.Errorf("when Joiner launched: %s", d)
	}
	say("Joiner launched %d nodes more", len(w.listed(env.NodeClaims()))-len(all))

	w.until("joiner migrate --back --apply", func() (string, bool) {
		code, out := w.joiner("migrate", "--back", "--apply") // refused while a function holds a lease
		return fmt.Sprintf("exit %d\n%s", code, out), code == 0 && strings.Contains(out, "did forget")
	})
	k = w.startKarpenter()
	say("Karpenter leads again")
	for range 3 {
		time.Sleep(10 * time.Second)
		w.round()
	}
	w.same("Karpenter took over", both)
	for _, d := range w.leftOn() {
		t.Errorf("left over on %s", d)
	}
	w.sees(all[0])
	say("Karpenter sees an edit")
	w.ends()
	w.stopKarpenter(k)
	if diff := cmp.Diff(profiles, w.Cloud.InstanceProfiles()); diff != "" {
		t.Errorf("instance profiles (-before +after):\n%s", diff)
	}
	byJoiner := 0
	for _, name := range w.Cloud.LaunchTemplates() {
		if byJoiner++; !strings.HasPrefix(name, "joiner/"+env.ClusterName+"/") {
			t.Errorf("launch template %s is left over", name)
		}
	}
	say("all is gone, but for %d launch templates of Joiner, which lifecycle deletes after an hour", byJoiner)
}

// rounds has Joiner pass again and again for so long.
func (w *world) rounds(d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(poll) {
		w.round()
	}
}

// same fails for each instance and NodeClaim that is another than before, and each that is called drifted.
func (w *world) same(when string, before map[string]string) {
	w.t.Helper()
	for _, d := range changed(before, w.holding()) {
		w.t.Errorf("%s: %s", when, d)
	}
	for _, d := range w.drifted() {
		w.t.Errorf("%s it is drifted: %s", when, d)
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// scale gives the Deployment of a class so many pods, each of which wants a node of its own.
func (w *world) scale(name string, replicas int) {
	w.t.Helper()
	s, err := w.Kube.AppsV1().Deployments("default").GetScale(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Spec.Replicas = int32(replicas)
	if _, err := w.Kube.AppsV1().Deployments("default").UpdateScale(w.ctx, name, s, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// leftOn names what of Joiner's is left on objects that Karpenter has.
func (w *world) leftOn() (out []string) {
	w.t.Helper()
	for _, o := range append(w.listed(env.NodePools()), w.listed(env.NodeClasses())...) {
		for k := range o.GetAnnotations() {
			if strings.HasPrefix(k, "joiner.sh/") {
				out = append(out, o.GetKind()+" "+o.GetName()+": "+k)
			}
		}
	}
	nodes, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range nodes.Items {
		for _, x := range n.Spec.Taints {
			out = append(out, "Node "+n.Name+": taint "+x.Key)
		}
	}
	return out
}

// sees has whoever leads see an edit of a class, on every node of it.
func (w *world) sees(c randomClass) {
	w.t.Helper()
	w.patch(env.NodeClasses(), c.name, `{"spec":{"tags":{"edited":"true"}}}`)
	w.until("an edit is drift", func() (string, bool) {
		n := 0
		for _, x := range w.listed(env.NodeClaims()) {
			if status, _, _ := condition(x, "Drifted"); status == "True" && x.GetLabels()["karpenter.sh/nodepool"] == c.name {
				n++
			}
		}
		return fmt.Sprint(n, " nodes are drifted"), n == 2
	})
}

// ends deletes everything and waits until Karpenter has ended it.
func (w *world) ends() {
	w.t.Helper()
	if err := w.Kube.AppsV1().Deployments("default").DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		w.t.Fatal(err)
	}
	for _, o := range w.listed(env.NodePools()) {
		if err := w.Kube.Dynamic.Resource(env.NodePools()).Delete(w.ctx, o.GetName(), metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.until("every node is gone", func() (string, bool) {
		living := 0
		for _, i := range w.Cloud.DescribedInstances() {
			if i.State != "terminated" {
				living++
			}
		}
		nodes, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		claims := len(w.listed(env.NodeClaims()))
		return fmt.Sprintf("%d NodeClaims, %d Nodes, %d instances", claims, len(nodes.Items), living), claims == 0 && len(nodes.Items) == 0 && living == 0
	})
	for _, o := range w.listed(env.NodeClasses()) {
		if err := w.Kube.Dynamic.Resource(env.NodeClasses()).Delete(w.ctx, o.GetName(), metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.until("every class is gone", func() (string, bool) {
		left := w.listed(env.NodeClasses())
		return fmt.Sprint(len(left), " classes"), len(left) == 0
	})
}
