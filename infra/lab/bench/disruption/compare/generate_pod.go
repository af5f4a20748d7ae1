package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

func newContainer(milliCPU, mebibytes int) corev1.Container {
	return corev1.Container{Name: "a", Image: "a", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(milliCPU), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(mebibytes)<<20, resource.BinarySI),
	}}}
}

// addPods puts pods on the node, no more than it holds.
func (d *dice) addPods(node *corev1.Node, t instancetypes.Type) {
	cpu, memory := t.Allocatable.CPU, t.Allocatable.Memory>>20
	for i := range d.s.DaemonSets {
		ds := &d.s.DaemonSets[i]
		if arch := ds.Spec.Template.Spec.NodeSelector["kubernetes.io/arch"]; arch != "" &&
			arch != node.Labels["kubernetes.io/arch"] {
			continue
		}
		cpu, memory = cpu-100, memory-128
		if d.oneIn(8) {
			continue // it has not come yet
		}
		p := d.drawPod(ds.Name+"-"+node.Name, node.Name, 100, 128)
		p.Namespace, p.Labels = ds.Namespace, ds.Spec.Template.Labels
		p.Spec.Tolerations, p.Spec.NodeSelector = ds.Spec.Template.Spec.Tolerations, ds.Spec.Template.Spec.NodeSelector
		setOwner(&p, "apps/v1", "DaemonSet", ds.Name)
		if d.oneIn(10) {
			setAnnotation(&p.ObjectMeta, api.AnnotationDoNotDisrupt, "true")
		}
		d.s.Pods = append(d.s.Pods, p)
	}
	if d.oneIn(4) {
		return
	}
	for i := range d.IntN(6) {
		needCPU, needMemory := 50+d.IntN(12)*100, 64+d.IntN(12)*200
		if cpu, memory = cpu-int64(needCPU), memory-int64(needMemory); cpu < 0 || memory < 0 {
			return
		}
		p := d.drawPod(fmt.Sprintf("pod-%s-%d", node.Name, i), node.Name, needCPU, needMemory)
		d.drawOwner(&p)
		d.constrainPod(&p, node)
		if d.oneIn(3) {
			d.podOddity(&p)
		} else {
			d.perhapsLate(&p.ObjectMeta)
		}
		d.s.Pods = append(d.s.Pods, p)
	}
}

// drawPod draws one that runs.
func (d *dice) drawPod(name, node string, milliCPU, mebibytes int) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uidOf("pod", name),
		CreationTimestamp: d.timeAgo(time.Hour),
		Labels:            map[string]string{"app": pickOne(d, "a", "b", "c", "d")}}}
	p.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{newContainer(milliCPU, mebibytes)}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &p.CreationTimestamp,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if d.oneIn(2) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	return p
}

func setOwner(p *corev1.Pod, version, kind, name string) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: uidOf(kind, name),
		Controller: new(true)}}
}

// drawOwner gives the pod what makes it, or nothing.
func (d *dice) drawOwner(p *corev1.Pod) {
	switch d.IntN(10) {
	case 0: // nobody makes another one
	case 1, 2:
		setOwner(p, "apps/v1", "StatefulSet", "stateful-"+p.Labels["app"])
	case 3:
		setOwner(p, "batch/v1", "Job", "job-"+p.Labels["app"])
	case 4:
		setOwner(p, "v1", "Node", p.Spec.NodeName)
		setAnnotation(&p.ObjectMeta, "kubernetes.io/config.mirror", "1")
	default:
		setOwner(p, "apps/v1", "ReplicaSet", "replica-"+p.Labels["app"])
	}
}

// constrainPod limits where the pod may be; the node it is on is one of those.
func (d *dice) constrainPod(p *corev1.Pod, node *corev1.Node) {
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}
	switch d.IntN(16) {
	case 0, 1, 2, 3:
		key := pickOne(d, corev1.LabelTopologyZone, "kubernetes.io/arch", api.LabelCapacityType, api.LabelNodePool)
		if value, ok := node.Labels[key]; ok {
			p.Spec.NodeSelector = map[string]string{key: value}
		}
	case 4:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: int32(1 + d.IntN(2)),
			TopologyKey:       corev1.LabelTopologyZone,
			WhenUnsatisfiable: pickOne(d, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: own}}
	case 5:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: own}}}}
	case 6:
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Name}
	}
}

// podOddity is something about a pod that changes whether it may be evicted, or may be mistaken for such.
func (d *dice) podOddity(p *corev1.Pod) {
	oddities := []func(){
		func() {
			setAnnotation(&p.ObjectMeta, api.AnnotationDoNotDisrupt,
				pickOne(d, "true", "true", "false", "10m", "30m", "2h", "-5m", "soon", ""))
		},
		func() {
			setAnnotation(&p.ObjectMeta, api.AnnotationDoNotDisrupt, "10m")
			p.Status.StartTime = nil
		},
		func() { p.Status.Phase = pickOne(d, corev1.PodSucceeded, corev1.PodFailed) },
		func() { p.Status.Phase = pickOne(d, corev1.PodPending, corev1.PodUnknown) },
		func() { p.DeletionTimestamp = new(d.timeAgo(2 * time.Minute)) },
		func() { p.DeletionTimestamp = new(metav1.NewTime(d.now.Add(20 * time.Second))) },
		func() { p.Status.Conditions[1].Status = corev1.ConditionFalse },
		func() { p.Status.Conditions[1].Status = corev1.ConditionUnknown },
		func() { p.Status.Conditions = p.Status.Conditions[:1] },
		func() {
			p.Spec.Tolerations = append(p.Spec.Tolerations,
				corev1.Toleration{Key: api.TaintDisrupted, Operator: corev1.TolerationOpExists})
		},
		func() { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
		func() { p.Spec.Priority = new(pickOne[int32](d, -200000000, -33554432, 1000, 1000000000)) },
		func() {
			setAnnotation(&p.ObjectMeta, corev1.PodDeletionCost,
				pickOne(d, "-2147483648", "-134217728", "100", "2147483647", "much"))
		},
		func() { p.Namespace = "other" },
		func() { p.Labels = nil },
	}
	oddities[d.IntN(len(oddities))]()
}

// waitingPod has no node yet. Most know which node they want.
func (d *dice) waitingPod(i int) corev1.Pod {
	p := d.drawPod(fmt.Sprintf("waiting-%d", i), "", 50+d.IntN(10)*100, 64+d.IntN(10)*100)
	p.Status = corev1.PodStatus{Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}}
	setOwner(&p, "apps/v1", "ReplicaSet", "replica-"+p.Labels["app"])
	p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	if len(d.s.Nodes) > 0 && !d.oneIn(4) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: d.s.Nodes[d.IntN(len(d.s.Nodes))].Name}
	}
	d.perhapsLate(&p.ObjectMeta)
	return p
}
