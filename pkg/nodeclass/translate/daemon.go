package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/admission"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/resources"
)

// Template translates the pod that a template makes, with the defaults of the API server. Volumes do not count.
func Template(namespace string, t corev1.PodTemplateSpec) *cluster.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: t.Labels,
		Annotations: t.Annotations}, Spec: *t.Spec.DeepCopy()}
	pod.Spec.NodeName = ""
	admission.SetDefaults(&pod.Spec)
	out := Pod(pod)
	return &out
}

// labelGeneration is on the pods of a DaemonSet, annotationGeneration on the DaemonSet itself: which template they are
// of.
const (
	labelGeneration      = "pod-template-generation"
	annotationGeneration = appsv1.DeprecatedTemplateGeneration
)

// PodList is all pods, and what else was seen of them on the way.
type PodList struct {
	Pods   []cluster.Pod         // in the order of SortedPods
	newest map[string]liveDaemon // by UID of the DaemonSet
}

// liveDaemon is a pod of a DaemonSet.
type liveDaemon struct {
	pod        cluster.Pod
	generation string // of the template it was made from; empty if it does not say
}

// NewPodList makes whole pods, in the memory given if there is enough of it, and remembers the newest of each
// DaemonSet.
func NewPodList(sorted SortedPods, memory []cluster.Pod) PodList {
	n := len(sorted.list)
	out := PodList{Pods: slices.Grow(memory[:0], n)[:n], newest: map[string]liveDaemon{}}
	for i, one := range sorted.list {
		out.Pods[i] = one.Pod()
		out.noteDaemonPod(&out.Pods[i])
	}
	return out
}

// noteDaemonPod remembers the newest pod of each DaemonSet.
func (l *PodList) noteDaemonPod(p *cluster.Pod) {
	if p.Owner != cluster.OwnerDaemonSet || p.Controller == "" || !p.Active() {
		return
	}
	have, ok := l.newest[p.Controller]
	if ok && cmp.Or(have.pod.Created.Compare(p.Created), strings.Compare(have.pod.Name, p.Name)) >= 0 {
		return
	}
	l.newest[p.Controller] = liveDaemon{*p, p.Labels[labelGeneration]}
}

// SampleDaemons are the pods that DaemonSets will add to a new node: like their newest pod, which shows what admission
// made of the template, with the template's required node affinity, for the pod's own names its node. A pod of an older
// template is no sample.
func (l *PodList) SampleDaemons(templates []DaemonTemplate) []cluster.Pod {
	var out []cluster.Pod
	for _, d := range templates {
		live, ok := l.newest[d.Pod.UID]
		if ok && (live.generation == "" || d.generation == "" || live.generation == d.generation) {
			out = append(out, d.withNewestPod(live.pod))
		} else {
			out = append(out, d.Pod)
		}
	}
	return BoundDaemons(out)
}

// mostDaemonSets bounds the DaemonSets that new nodes keep room for: each is tried on each offering of each pool.
// Clusters with all kinds of agents and drivers have some 50. One counts once more for each countsOnceMore of its
// requirements, resources and tens of tolerations: others wait 1.7 s for those of any kind, see
// BenchmarkHostileDaemonSets.
const (
	mostDaemonSets = 200
	countsOnceMore = 10
)

// BoundDaemons makes those DaemonSets count for no node that are too many. Namespaces get the same, and within one the
// first by name count. Those that are much work count as several.
func BoundDaemons(list []cluster.Pod) []cluster.Pod {
	names := make([]fairshare.Named, len(list))
	for i, d := range list {
		names[i] = fairshare.Named{Namespace: d.Namespace, Name: d.Name, Weight: daemonWeight(&d)}
	}
	keep, by := fairshare.KeepFirst(mostDaemonSets, names)
	for i, yes := range keep {
		if d, n := list[i], by[names[i].Namespace]; !yes {
			list[i] = cluster.Pod{Namespace: d.Namespace, Name: d.Name, UID: d.UID, Owner: d.Owner,
				Unmodelled: []string{fmt.Sprintf("namespace %s has %d DaemonSets, of which the first %d count: all together "+
					"may be %d, shared out by namespace, and one with many requirements or resources counts as several",
					d.Namespace, n.Of, n.Most, mostDaemonSets)}}
		}
	}
	return list
}

// daemonWeight returns the number of simple DaemonSets that are as much work.
func daemonWeight(d *cluster.Pod) int64 {
	n := 2*len(d.Need.Extended) + len(d.Tolerations)/countsOnceMore
	for _, t := range d.NodeAffinity {
		n += len(t)
	}
	return 1 + int64(n/countsOnceMore)
}

// DaemonTemplate is a DaemonSet as the pod that its template makes.
type DaemonTemplate struct {
	Pod        cluster.Pod // without a name of its own
	generation string      // of the template
}

// NewDaemonTemplate translates a DaemonSet.
func NewDaemonTemplate(d *appsv1.DaemonSet) DaemonTemplate {
	return DaemonTemplate{DaemonPod(d), shortAnnotation(d.Annotations, annotationGeneration)}
}

// withNewestPod is the template's pod with what admission made of the newest pod of the DaemonSet.
func (d DaemonTemplate) withNewestPod(live cluster.Pod) cluster.Pod {
	if d.Pod.Need.IsZero() || repelsAll(live) {
		return d.Pod // of one of them little is known
	}
	out := d.Pod
	out.Labels, out.Priority, out.Critical, out.GraceSec = live.Labels, live.Priority, live.Critical, live.GraceSec
	out.Need, out.NodeSelector, out.Tolerations, out.HostPorts = live.Need, live.NodeSelector, live.Tolerations,
		live.HostPorts
	out.NodePrefers, out.Spread = live.NodePrefers, live.Spread
	out.Affinity, out.AntiAffinity, out.Prefers, out.Avoids = live.Affinity, live.AntiAffinity, live.Prefers,
		live.Avoids
	return out
}

// DaemonPod translates the pod that a DaemonSet makes for a node: limits stand in for requests that are not given, and
// the tolerations that the controller adds are there.
func DaemonPod(d *appsv1.DaemonSet) cluster.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name, UID: d.UID, Labels: d.Spec.Template.Labels,
			Annotations: d.Spec.Template.Annotations, CreationTimestamp: d.CreationTimestamp,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name,
				UID: d.UID}},
		},
		Spec: *d.Spec.Template.Spec.DeepCopy(),
	}
	admission.SetDefaults(&pod.Spec)
	for key, effect := range map[string]corev1.TaintEffect{
		corev1.TaintNodeNotReady: corev1.TaintEffectNoExecute, corev1.TaintNodeUnreachable: corev1.TaintEffectNoExecute,
		corev1.TaintNodeDiskPressure:   corev1.TaintEffectNoSchedule,
		corev1.TaintNodeMemoryPressure: corev1.TaintEffectNoSchedule,
		corev1.TaintNodePIDPressure:    corev1.TaintEffectNoSchedule,
		corev1.TaintNodeUnschedulable:  corev1.TaintEffectNoSchedule,
	} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations,
			corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	slices.SortStableFunc(pod.Spec.Tolerations, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
	})
	out := Pod(pod)
	if _, why := boundPod(pod); len(why) > 0 {
		// its nodes are not known, nor whom it keeps away: it counts for none, and keeps nobody off a new node
		out.AntiAffinity, out.Need = nil, resources.List{}
	}
	return out
}

// repelsAll reports whether of the pod is known that it keeps others off its node, and not whom.
func repelsAll(p cluster.Pod) bool {
	return slices.ContainsFunc(p.AntiAffinity, func(t cluster.AffinityTerm) bool {
		return t.Key == corev1.LabelHostname && t.Selector != nil && len(t.Selector.Requirements) == 0 &&
			t.NamespaceSelector != nil && len(t.NamespaceSelector.Requirements) == 0
	})
}
