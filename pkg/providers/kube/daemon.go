package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner/pkg/model/cluster"
)

// labelGeneration is on the pods of a DaemonSet, annotationGeneration on the DaemonSet itself: which template they are
// of.
const (
	labelGeneration      = "pod-template-generation"
	annotationGeneration = appsv1.DeprecatedTemplateGeneration
)

// podList is all pods, and what else was seen of them on the way.
type podList struct {
	pods   []cluster.Pod
	newest map[string]liveDaemon // by UID of the DaemonSet
}

// liveDaemon is a pod of a DaemonSet.
type liveDaemon struct {
	pod        cluster.Pod
	generation string // of the template it was made from; empty if it does not say
}

// storedPod is a pod with what a podList is made of.
type storedPod struct {
	pod        cluster.Pod
	controller string // UID of the DaemonSet; empty for other pods
}

func storePod(p *corev1.Pod) storedPod {
	out := storedPod{pod: podFrom(p)}
	out.pod.UnreadClaims = claimNames(p)
	if owner := metav1.GetControllerOf(p); owner != nil && out.pod.Owner == cluster.OwnerDaemonSet {
		out.controller = string(owner.UID)
	}
	return out
}

// podListOf are the pods, sorted.
func podListOf(all []storedPod) podList {
	out := podList{newest: map[string]liveDaemon{}}
	for _, s := range all {
		out.pods = append(out.pods, s.pod)
		out.noteDaemonPod(s)
	}
	slices.SortFunc(out.pods, comparePods)
	return out
}

// noteDaemonPod remembers the newest pod of each DaemonSet.
func (l *podList) noteDaemonPod(s storedPod) {
	if s.controller == "" || !s.pod.Active() {
		return
	}
	have, ok := l.newest[s.controller]
	if ok && cmp.Or(have.pod.Created.Compare(s.pod.Created), strings.Compare(have.pod.Name, s.pod.Name)) >= 0 {
		return
	}
	l.newest[s.controller] = liveDaemon{s.pod, s.pod.Labels[labelGeneration]}
}

// daemonSamples are the pods that DaemonSets will add to a new node: like their newest pod, which shows what admission
// made of the template, with the template's required node affinity, for the pod's own names its node. A pod of an older
// template is no sample.
func (l *podList) daemonSamples(templates []daemonSet) []cluster.Pod {
	var out []cluster.Pod
	for _, d := range templates {
		live, ok := l.newest[d.pod.UID]
		if ok && (live.generation == "" || d.generation == "" || live.generation == d.generation) {
			out = append(out, d.withNewestPod(live.pod))
		} else {
			out = append(out, d.pod)
		}
	}
	return out
}

// daemonSet is a DaemonSet as the pod that its template makes.
type daemonSet struct {
	pod        cluster.Pod
	generation string // of the template
}

func (d daemonSet) withNewestPod(live cluster.Pod) cluster.Pod {
	out := d.pod
	out.Labels, out.Priority, out.Critical, out.GraceSec = live.Labels, live.Priority, live.Critical, live.GraceSec
	out.Need, out.NodeSelector, out.Tolerations, out.HostPorts = live.Need, live.NodeSelector, live.Tolerations,
		live.HostPorts
	out.NodePrefers, out.Spread = live.NodePrefers, live.Spread
	out.Affinity, out.AntiAffinity, out.Prefers, out.Avoids = live.Affinity, live.AntiAffinity, live.Prefers,
		live.Avoids
	return out
}

func (c *Client) listDaemons(ctx context.Context) ([]daemonSet, error) {
	out, _, err := listAll(ctx, c, listQuery{place: daemonSets()},
		func() *appsv1.DaemonSetList { return &appsv1.DaemonSetList{} },
		func(l *appsv1.DaemonSetList) []daemonSet {
			return translatePage(l.Items, func(d *appsv1.DaemonSet) daemonSet {
				return daemonSet{daemonFrom(d), d.Annotations[annotationGeneration]}
			})
		})
	slices.SortFunc(out, func(a, b daemonSet) int { return comparePods(a.pod, b.pod) })
	return out, err
}

// daemonFrom is a pod as the DaemonSet makes it for a node: limits stand in for requests that are not given, and the
// tolerations that the controller adds are there.
func daemonFrom(d *appsv1.DaemonSet) cluster.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name, UID: d.UID, Labels: d.Spec.Template.Labels,
			Annotations: d.Spec.Template.Annotations, CreationTimestamp: d.CreationTimestamp,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name,
				UID: d.UID}},
		},
		Spec: *d.Spec.Template.Spec.DeepCopy(),
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			limitsForRequests(&list[i].Resources)
		}
	}
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
	return podFrom(pod)
}

func limitsForRequests(r *corev1.ResourceRequirements) {
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = q
	}
}
