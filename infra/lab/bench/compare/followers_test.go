package main

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/infra/lab/bench/manifests"
)

// A pod that Joiner leaves is excused by pods being deleted only if all that it must be near are among them, and if
// that is why it is left. In each case Joiner's plan is made to leave it, and in one to have another pod in its place, so
// that nobody has room beside what Joiner places: the limit allows one node.
func TestFollowersOfDeletedPods(t *testing.T) {
	const (
		near  = "pool-0: pod affinity over topology.kubernetes.io/zone: no value of it has room"
		small = "pool-0: nothing has so much cpu"
		zone  = "nodeSelector: {topology.kubernetes.io/zone: us-west-2a}, " // Karpenter counts a pod where one zone is left
	)
	deleted := waiting("lead-0", "lead", true, zone)
	const beside = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
		"[{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: lead}}}]}}, "
	follower := waiting("near-0", "near", false, beside)
	asks := func(cpu string) string { // as one of its init containers does
		return "initContainers: [{name: i, image: app, resources: {requests: {cpu: " + cpu + "}}}], "
	}
	full := waiting("other-0", "lead", false, zone+asks("3")) + waiting("near-0", "near", false, beside+asks("2600m")) +
		waiting("big-0", "big", false, zone+asks("2500m"))
	for name, x := range map[string]struct {
		pods, why string
		excused   bool
	}{
		"the one that it must be near is being deleted": {deleted + follower, near, true},
		"the one that it must be near stays":            {waiting("lead-0", "lead", false, zone) + follower, near, false},
		"another one that it may be near stays":         {deleted + waiting("other-0", "lead", false, zone) + follower, near, false},
		"another one stays, and nobody has room beside": {deleted + full, near, false},
		"it is left for something else":                 {deleted + follower, small, false},
	} {
		v := judgeWithout(t, "default/near-0", "default/big-0", x.why, x.pods)
		if excused := len(v.faults) == 0; excused != x.excused {
			t.Errorf("%s: excused %v, want %v: %v, explained by %v", name, excused, x.excused, v.faults, v.explained)
		}
	}
}

// waiting is a pod that waits, as a document.
func waiting(name, app string, deleted bool, spec string) string {
	end := ""
	if deleted {
		end = `, finalizers: [example.com/wait], deletionTimestamp: "2025-12-31T23:59:00Z"`
	}
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: default, uid: uid-" + name +
		`, creationTimestamp: "2025-12-31T23:55:00Z", labels: {app: ` + app + "}" + end + "}\nspec: {" + spec +
		"containers: [{name: a, image: app}]}\n" +
		`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}` + "\n"
}

// judgeWithout judges a cluster with one NodePool and these pods, as if Joiner left one of them for the reason, and had
// another one that waits in its place. The NodePool may have one node.
func judgeWithout(t *testing.T, pod, instead, why, pods string) (v verdict) {
	t.Helper()
	text, err := os.ReadFile("testdata/limits-overshot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pool, _, _ := strings.Cut(string(text), "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\n")
	pool = strings.Replace(pool, `cpu: "24"`, `cpu: "8"`, 1)
	c, err := manifests.ParseCluster("plant.yaml", []byte(pool+pods))
	if err != nil {
		t.Fatal(err)
	}
	all := sold(t)
	s, err := c.ReadSnapshot(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{c: c, pods: map[string]*corev1.Pod{}, typesOf: map[string][]string{}}
	tr.capacityOf, tr.roomOf = resourcesByType(s)
	for i := range c.Pods {
		tr.pods[c.Pods[i].Namespace+"/"+c.Pods[i].Name] = &c.Pods[i]
	}
	p, _ := decidePlan(s)
	if tr.ours, err = outcomeOf(s, p, asChosen); err != nil {
		t.Fatal(err)
	}
	place := ""
	if tr.pods[instead] != nil {
		place = instead
	}
	for i := range tr.ours.New {
		n := &tr.ours.New[i]
		n.Pods = strings.Fields(strings.ReplaceAll(strings.Join(n.Pods, " "), pod, place))
	}
	delete(tr.ours.Left, instead)
	tr.ours.Left[pod] = why
	if err := tr.findMissing(context.Background(), s, all, &v); err != nil {
		t.Fatal(err)
	}
	if tr.theirs.PlacedPods()[pod] == "" {
		t.Fatalf("Karpenter leaves %s as well: %s", pod, tr.theirs.Left[pod])
	}
	return v
}
