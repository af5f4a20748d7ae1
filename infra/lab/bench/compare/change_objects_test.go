package main

import (
	"cmp"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/whatif"
)

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
