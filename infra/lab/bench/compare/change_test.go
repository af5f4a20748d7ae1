package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
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
				if refused := (*refusedError)(nil); errors.As(err, &refused) {
					t.Errorf("seed %d: %s: %v", seed, x, err)
				}
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

// judgeChange says what is wrong with the cluster for the pods, or nothing.
func judgeChange(ctx context.Context, c *manifests.Cluster, all instancetypes.Catalog, pods ...string) string {
	s, err := c.ReadSnapshot(ctx, all)
	if err != nil {
		return err.Error()
	}
	p := binpack.Pods(s)
	tr, err := newTrial(c, s, p)
	if err != nil {
		return err.Error()
	}
	for _, pod := range pods {
		if tr.ours.PlacedPods()[pod] == "" {
			return pod + " has no place: " + tr.ours.Left[pod]
		}
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

// Each change that Joiner names for a node that stays is made in the objects. Joiner lets the node go then, and
// kube-scheduler's plugins have nothing against where its pods go.
func TestNamedChangesLetNodesGo(t *testing.T) {
	ctx, all := context.Background(), sold(t)
	asked, judged, moved, fields, left := 0, 0, 0, map[string]int{}, map[string]int{}
	for seed := *wanted.first; seed < *wanted.first+uint64(*wanted.seeds); seed++ {
		c, err := randomCluster(seed, all, (*draw).addServingNodes)
		if err != nil {
			t.Fatal(err)
		}
		guardNodes(c, seed)
		s, err := c.ReadSnapshot(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range s.Claims {
			asked++
			for _, x := range whatif.ForNode(s, disruption.Memory{}, binpack.ResolveOfferings(s), claim.Name,
				whatif.Limits{}).Changes {
				edited, err := makeChange(c, s, x)
				if refused := (*refusedError)(nil); errors.As(err, &refused) {
					t.Errorf("seed %d: %s: %v", seed, x, err)
				}
				if err != nil {
					left[err.Error()]++
					continue
				}
				judged++
				for _, e := range x.Edits {
					fields[e.Kind+" "+strings.Split(e.Field, "[")[0]]++
				}
				n, bad := judgeLeaving(ctx, edited, all, claim.Name)
				moved += n
				if bad != "" {
					t.Errorf("seed %d, %s: %s: %s", seed, claim.Name, x, bad)
				}
			}
		}
	}
	t.Logf("%d changes of %d nodes, of which %d pods move: %v; not made: %v", judged, asked, moved, fields, left)
	if judged < *wanted.seeds/2 || moved < judged/4 || len(fields) < 4 {
		t.Errorf("%d changes of %d kinds, of which %d pods move, test little", judged, len(fields), moved)
	}
}

// addServingNodes adds nodes that are in service.
func (d *draw) addServingNodes() {
	d.addNodes(4)
	for _, x := range d.nodes {
		x.state = stateInitialized
	}
}

// guardNodes has the nodes of the cluster stay, each for something else.
func guardNodes(c *manifests.Cluster, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 60))
	old := metav1.NewTime(manifests.ClusterTime().Add(-3 * time.Hour))
	guard := func(o *metav1.ObjectMeta) {
		if r.IntN(4) == 0 {
			o.Annotations = map[string]string{api.AnnotationDoNotDisrupt: "true"}
		}
	}
	for i := range c.NodePools {
		d := &c.NodePools[i].Spec.Disruption
		d.ConsolidationPolicy, d.ConsolidateAfter = api.ConsolidationWhenEmptyOrUnderutilized, api.After(0)
		d.Budgets = []api.Budget{{Nodes: []string{"0", "1", "100%", "100%"}[r.IntN(4)]}}
		switch r.IntN(4) {
		case 0:
			d.ConsolidateAfter = api.After(5 * time.Hour)
		case 1:
			d.ConsolidationPolicy = api.ConsolidationWhenEmpty
		}
	}
	for i := range c.NodeClaims {
		c.NodeClaims[i].CreationTimestamp = old
	}
	for i := range c.Nodes {
		c.Nodes[i].CreationTimestamp = old
		guard(&c.Nodes[i].ObjectMeta)
	}
	for i := range c.Pods {
		if c.Pods[i].Spec.NodeName != "" {
			guard(&c.Pods[i].ObjectMeta)
		}
	}
}

// judgeLeaving says what is wrong with the cluster for the node to go, or nothing, and how many pods move.
func judgeLeaving(ctx context.Context, c *manifests.Cluster, all instancetypes.Catalog, claim string) (int, string) {
	s, err := c.ReadSnapshot(ctx, all)
	if err != nil {
		return 0, err.Error()
	}
	if _, goes := disruption.AskAbout(s, disruption.Memory{}, binpack.ResolveOfferings(s), nil, claim); !goes {
		return 0, "it stays"
	}
	gone, moved := withoutNode(c, s, claim)
	return len(moved), judgeChange(ctx, gone, all, moved...)
}

// withoutNode is the cluster without the node of the claim. The pods that move wait in it, and no others, which may want
// the same room.
func withoutNode(c *manifests.Cluster, s cluster.Snapshot, claim string) (out *manifests.Cluster, moved []string) {
	i := slices.IndexFunc(s.Claims, func(x cluster.Claim) bool { return x.Name == claim })
	name, next := s.Claims[i].NodeName, *c
	next.NodeClaims = slices.DeleteFunc(slices.Clone(c.NodeClaims),
		func(x api.NodeClaim) bool { return x.Name == claim })
	next.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n corev1.Node) bool { return n.Name == name })
	for _, p := range s.Pods {
		if p.NodeName == name && p.Reschedulable() && !p.Terminating() {
			moved = append(moved, p.Key())
		}
	}
	next.Pods = nil
	for _, p := range c.Pods {
		if p.Spec.NodeName == name || p.Spec.NodeName == "" {
			if !slices.Contains(moved, p.Namespace+"/"+p.Name) {
				continue
			}
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
		}
		next.Pods = append(next.Pods, p)
	}
	return &next, moved
}

// refusedError is what the API server has against a change.
type refusedError struct{ error }

// makeChange makes the change in the objects of the cluster. The error is a kind of edit that is not made here, or a
// refusedError.
func makeChange(c *manifests.Cluster, s cluster.Snapshot, x whatif.Change) (*manifests.Cluster, error) {
	out, after := *c, x.Apply(s)
	out.Pods, out.NodePools, out.Nodes = slices.Clone(c.Pods), slices.Clone(c.NodePools), slices.Clone(c.Nodes)
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
			alone := whatif.Change{Edits: []whatif.Edit{e}}.Apply(s) // other edits may be about other pods
			for i := range s.Pods {
				if reflect.DeepEqual(s.Pods[i], alone.Pods[i]) {
					continue
				}
				at := slices.IndexFunc(out.Pods, func(p corev1.Pod) bool { return p.Namespace+"/"+p.Name == s.Pods[i].Key() })
				out.Pods[at] = *out.Pods[at].DeepCopy()
				to := after.Pods[i]
				to.Tolerations = alone.Pods[i].Tolerations // its own is the last
				if err := writePod(&out.Pods[at], s.Pods[i], to, e); err != nil {
					return nil, err
				}
				if err := newRefusals(c.Pods[at], out.Pods[at]); err != nil {
					return nil, &refusedError{err}
				}
			}
		case e.Kind == "Node":
			i := slices.IndexFunc(out.Nodes, func(n corev1.Node) bool { return n.Name == e.Name })
			out.Nodes[i].Annotations = nil
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
	case strings.HasPrefix(e.Field, "spec.disruption."):
		d := &o.Spec.Disruption
		d.ConsolidationPolicy = api.ConsolidationPolicy(p.Disruption.Policy)
		d.ConsolidateAfter = api.After(p.Disruption.After)
		for i := range d.Budgets {
			d.Budgets[i].Nodes = p.Disruption.Budgets[i].Nodes
		}
	case strings.HasPrefix(e.Field, "metadata.annotations."):
		o.Annotations = map[string]string{strings.TrimPrefix(e.Field, "metadata.annotations."): e.To}
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
	case strings.HasPrefix(place, "metadata.annotations."):
		o.Annotations = nil
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
	case strings.Contains(e.Field, ".resources."):
		_, of, _ := strings.Cut(e.Field, ".resources.")
		_, name, _ := strings.Cut(of, ".") // of requests or limits
		cutRequests(spec, name, before, after)
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

// cutRequests has the pod as a whole, or where it does not ask all containers, ask for as much less as the pod does.
func cutRequests(spec *corev1.PodSpec, name string, before, after cluster.Pod) {
	key := corev1.ResourceName(name)
	over := translate.Amounts(spec.Overhead).Get(name)
	was, to := before.Need.Get(name)-over, after.Need.Get(name)-over
	cut := func(r *corev1.ResourceRequirements) {
		if q, asks := r.Requests[key]; asks {
			n := translate.Amounts(corev1.ResourceList{key: q}).Get(name)
			hi, lo := bits.Mul64(uint64(n), uint64(to)) // more than 63 bits
			part, _ := bits.Div64(hi, lo, uint64(was))
			r.Requests[key] = resource.MustParse(resources.Format(name, int64(part)))
		}
	}
	if spec.Resources != nil {
		if _, whole := spec.Resources.Requests[key]; whole {
			cut(spec.Resources)
			return
		}
	}
	for i := range spec.Containers {
		cut(&spec.Containers[i].Resources)
	}
	for i := range spec.InitContainers {
		cut(&spec.InitContainers[i].Resources)
	}
}

// newRefusals are what the API server's own validation has against the pod, and had not before.
func newRefusals(before, after corev1.Pod) error {
	known := map[string]bool{}
	for _, e := range refusalsOf(before) {
		known[e.Error()] = true
	}
	for _, e := range refusalsOf(after) {
		if !known[e.Error()] {
			return e
		}
	}
	return nil
}

// refusalsOf are what the API server's own validation has against the pod.
func refusalsOf(p corev1.Pod) field.ErrorList {
	p = *p.DeepCopy()
	corev1defaults.SetObjectDefaults_Pod(&p)
	var internal core.Pod
	if err := corev1defaults.Convert_v1_Pod_To_core_Pod(&p, &internal, nil); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validation.ValidatePodCreate(&internal, podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil))
}
