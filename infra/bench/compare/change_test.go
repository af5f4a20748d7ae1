package main

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/infra/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// Each change that Joiner names for a pod without a node is made in the objects, as people make it. Joiner has a place
// for the pod then, and kube-scheduler's plugins have nothing against where all pods go.
func TestNamedChangesWork(t *testing.T) {
	ctx, all := context.Background(), sold(t)
	asked, judged, fields, left := 0, 0, map[string]int{}, map[string]int{}
	for seed := *wanted.first; seed < *wanted.first+uint64(*wanted.seeds); seed++ {
		c, err := randomCluster(seed, all)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.ReadSnapshot(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		unplaced := binpack.Pods(s).Unplaced
		for _, u := range unplaced[:min(3, len(unplaced))] {
			asked++
			for _, x := range whatif.ForPod(s, binpack.ResolveOfferings(s), u.Pod, whatif.Limits{}).Changes {
				edited, err := makeChange(c, s, x)
				if err != nil {
					left[err.Error()]++
					continue
				}
				judged++
				for _, e := range x.Edits {
					fields[e.Kind+" "+strings.Split(e.Field, "[")[0]]++
				}
				if bad := judgeChange(ctx, edited, all, u.Pod); bad != "" {
					t.Errorf("seed %d, %s: %s: %s", seed, u.Pod, x, bad)
				}
			}
		}
	}
	t.Logf("%d changes of %d pods: %v; not made: %v", judged, asked, fields, left)
	if judged < *wanted.seeds/2 || len(fields) < 6 {
		t.Errorf("%d changes of %d kinds test little", judged, len(fields))
	}
}

// judgeChange says what is wrong with the cluster for the pod, or nothing.
func judgeChange(ctx context.Context, c *manifests.Cluster, all instancetypes.Catalog, pod string) string {
	s, err := c.ReadSnapshot(ctx, all)
	if err != nil {
		return err.Error()
	}
	p := binpack.Pods(s)
	tr, err := newTrial(c, s, p)
	if err != nil {
		return err.Error()
	}
	if tr.ours.PlacedPods()[pod] == "" {
		return "it has no place: " + tr.ours.Left[pod]
	}
	var v verdict
	if err := tr.checkPlaces(ctx, s, p, &v); err != nil {
		return err.Error()
	}
	for _, f := range v.faults {
		return fmt.Sprintf("kube-scheduler refuses %s: %s", f.Pod, f.Why)
	}
	return ""
}

// makeChange makes the change in the objects of the cluster. The error is a kind of edit that is not made here.
func makeChange(c *manifests.Cluster, s cluster.Snapshot, x whatif.Change) (*manifests.Cluster, error) {
	out, after := *c, x.Apply(s)
	out.Pods, out.NodePools = slices.Clone(c.Pods), slices.Clone(c.NodePools)
	for _, e := range x.Edits {
		switch {
		case e.Kind == "NodePool":
			i := slices.IndexFunc(out.NodePools, func(p api.NodePool) bool { return p.Name == e.Name })
			p, _ := after.PoolOf(e.Name)
			out.NodePools[i] = *out.NodePools[i].DeepCopy()
			if err := writePool(&out.NodePools[i], p, e); err != nil {
				return nil, err
			}
		case e.Kind == "Pod":
			for i := range s.Pods {
				if reflect.DeepEqual(s.Pods[i], after.Pods[i]) {
					continue
				}
				at := slices.IndexFunc(out.Pods, func(p corev1.Pod) bool { return p.Namespace+"/"+p.Name == s.Pods[i].Key() })
				out.Pods[at] = *out.Pods[at].DeepCopy()
				if err := writePod(&out.Pods[at], s.Pods[i], after.Pods[i], e); err != nil {
					return nil, err
				}
			}
		case e.Kind == whatif.KindSetting && e.Name == "minValuesPolicy":
			out.Settings.RelaxMinValues = true
		default:
			return nil, fmt.Errorf("%s %s", e.Kind, e.Name)
		}
	}
	return &out, nil
}

// writePool writes what the edit changes of a NodePool.
func writePool(o *api.NodePool, p cluster.Pool, e whatif.Edit) error {
	switch {
	case strings.HasPrefix(e.Field, "spec.template.spec.requirements"):
		o.Spec.Template.Spec.Requirements = translate.ClaimRequirements(p.Requirements)
	case strings.HasPrefix(e.Field, "spec.template.spec.taints"):
		o.Spec.Template.Spec.Taints = translate.CoreTaints(p.Taints)
	case strings.HasPrefix(e.Field, "spec.template.metadata.labels"):
		o.Spec.Template.Labels = p.Labels
	case strings.HasPrefix(e.Field, "spec.limits."):
		name := strings.TrimPrefix(e.Field, "spec.limits.")
		o.Spec.Limits[corev1.ResourceName(name)] = resource.MustParse(resources.Format(name, p.Limits.Get(name)))
	default:
		return fmt.Errorf("NodePool %s", e.Field)
	}
	return nil
}

// writePod writes what the edit changes of a pod.
func writePod(o *corev1.Pod, before, after cluster.Pod, e whatif.Edit) error {
	at := -1 // of the element of a list
	if _, rest, in := strings.Cut(e.Field, "["); in {
		_, _ = fmt.Sscanf(rest, "%d]", &at)
	}
	spec, place := &o.Spec, strings.Split(e.Field, "[")[0]
	switch {
	case strings.HasPrefix(place, "spec.nodeSelector."):
		spec.NodeSelector = after.NodeSelector
	case strings.HasPrefix(place, "spec.affinity.nodeAffinity."):
		writeNodeAffinity(spec, after.NodeAffinity)
	case strings.HasPrefix(place, "spec.affinity.podAffinity."):
		list := &spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = slices.Delete(*list, at, at+1)
	case strings.HasPrefix(place, "spec.affinity.podAntiAffinity."):
		list := &spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = slices.Delete(*list, at, at+1)
	case place == "spec.tolerations":
		x := after.Tolerations[len(after.Tolerations)-1]
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: x.Key, Value: x.Value,
			Operator: corev1.TolerationOperator(x.Operator), Effect: corev1.TaintEffect(x.Effect)})
	case place == "spec.topologySpreadConstraints":
		x, from := &spec.TopologySpreadConstraints[at], after.Spread[at]
		x.MaxSkew = from.MaxSkew
		if from.Soft {
			x.WhenUnsatisfiable = corev1.ScheduleAnyway
		}
		if from.MinDomains > 0 {
			x.MinDomains = &from.MinDomains
		}
		if honor := corev1.NodeInclusionPolicyHonor; from.HonorTaints {
			x.NodeTaintsPolicy = &honor
		}
	case place == "spec.containers" && strings.Contains(e.Field, "hostPort="):
		for i := range spec.Containers {
			spec.Containers[i].Ports = slices.DeleteFunc(spec.Containers[i].Ports, func(p corev1.ContainerPort) bool {
				return strings.HasSuffix(e.Field, fmt.Sprintf("[hostPort=%d]", p.HostPort)) &&
					cmp.Or(string(p.Protocol), "TCP") == e.From
			})
		}
	case strings.Contains(e.Field, "resources.requests."):
		cutRequests(spec, e.Field[strings.LastIndex(e.Field, "requests.")+len("requests."):], before, after)
	default:
		return fmt.Errorf("Pod %s", e.Field)
	}
	return nil
}

// writeNodeAffinity has the pod require one of the terms.
func writeNodeAffinity(spec *corev1.PodSpec, terms [][]requirements.Requirement) {
	var list []corev1.NodeSelectorTerm
	for _, term := range terms {
		var out corev1.NodeSelectorTerm
		for _, r := range translate.ClaimRequirements(requirements.NewSet(term...)) {
			op, values := string(r.Operator), r.Values
			if n := 0; op == "Gte" || op == "Lte" { // which pods do not know
				_, _ = fmt.Sscan(values[0], &n)
				op, values = map[string]string{"Gte": "Gt", "Lte": "Lt"}[op], []string{fmt.Sprint(n - 1)}
				if op == "Lt" {
					values = []string{fmt.Sprint(n + 1)}
				}
			}
			out.MatchExpressions = append(out.MatchExpressions,
				corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(op), Values: values})
		}
		list = append(list, out)
	}
	if spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil; len(list) > 0 {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: list}
	}
}

// cutRequests has all containers ask for as much less as the pod does.
func cutRequests(spec *corev1.PodSpec, name string, before, after cluster.Pod) {
	key := corev1.ResourceName(name)
	over := translate.Amounts(spec.Overhead).Get(name)
	was, to := before.Need.Get(name)-over, max(0, after.Need.Get(name)-over)
	cut := func(r *corev1.ResourceRequirements) {
		if q, asks := r.Requests[key]; asks {
			n := translate.Amounts(corev1.ResourceList{key: q}).Get(name)
			r.Requests[key] = resource.MustParse(resources.Format(name, n*to/was))
		}
	}
	for i := range spec.Containers {
		cut(&spec.Containers[i].Resources)
	}
	for i := range spec.InitContainers {
		cut(&spec.InitContainers[i].Resources)
	}
	if spec.Resources != nil {
		cut(spec.Resources)
	}
}
