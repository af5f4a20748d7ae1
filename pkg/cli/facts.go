package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/api/joiner/v1alpha1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/install/setup"
	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
)

// Where objects are served that are read as they are stored.
const (
	atPods        = "/api/v1/pods"
	atNodes       = "/api/v1/nodes"
	atClasses     = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
	atClaims      = "/apis/karpenter.sh/v1/nodeclaims"
	atRollouts    = "/apis/joiner.sh/v1alpha1/noderollouts"
	atPools       = "/apis/karpenter.sh/v1/nodepools"
	atDeployments = "/apis/apps/v1/deployments"
	atCRDs        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	atBuffers     = "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers"
	atLeases      = "/apis/coordination.k8s.io/v1/namespaces/joiner-system/leases"
)

// storedObjects are objects by the path of their kind. What may not be read is noted and has none.
type storedObjects struct {
	l      clusterLink
	denied *[]string
}

// forEach calls each for every object.
func (s storedObjects) forEach(ctx context.Context, path string, each func(*unstructured.Unstructured)) error {
	err := s.l.kube.Objects.List(ctx, path, func(o *unstructured.Unstructured) error {
		each(o)
		return nil
	})
	if apierrors.IsForbidden(err) {
		*s.denied = append(*s.denied, "list "+path[strings.LastIndex(path, "/")+1:])
		return nil
	}
	return err
}

// compareObjects tells how the objects that Joiner brings stand in the cluster.
func (s storedObjects) compareObjects(ctx context.Context, brought []*unstructured.Unstructured) ([]doctor.Object,
	error) {
	var out []doctor.Object
	for _, want := range brought {
		path, err := setup.ObjectPath(want)
		if err != nil {
			return nil, err
		}
		have, found, err := s.l.kube.Objects.Get(ctx, path)
		if apierrors.IsForbidden(err) {
			*s.denied = append(*s.denied, "get "+strings.ToLower(want.GetKind())+"s")
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		o := doctor.Object{Name: strings.ToLower(want.GetKind()) + "/" + want.GetName(), Found: found}
		if found {
			if at := install.FirstDifference(want.Object, have.Object); at != "" {
				o.Differs = "differs at " + at
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// readClasses are the EC2NodeClasses with what is not right about them; chosen are their subnets and security groups.
func (s storedObjects) readClasses(ctx context.Context) (out []doctor.Class, chosen []awsv1.EC2NodeClassStatus,
	err error) {
	err = s.forEach(ctx, atClasses, func(o *unstructured.Unstructured) {
		var c awsv1.EC2NodeClass
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c) != nil {
			return // the CRD would not have let it in
		}
		d := doctor.Class{Name: c.Name, Role: c.Spec.Role, Empty: c.EmptyTerms(),
			Misread: nodeclass.MisreadUserData(&c)}
		for _, k := range c.Status.Conditions {
			if k.Status != "True" && k.Type != awsv1.ConditionReady {
				d.Problems = append(d.Problems, doctor.Problem{Condition: k.Type,
					Message: strings.TrimSpace(k.Reason + " " + k.Message)})
			}
		}
		if len(c.Status.Conditions) == 0 {
			d.Problems = append(d.Problems, doctor.Problem{Condition: "Ready", Message: "nobody has looked at it yet"})
		}
		out, chosen = append(out, d), append(chosen, c.Status)
	})
	return out, chosen, err
}

// podsWithoutRequests counts the pods that have not ended, and gives the controllers whose pods ask for no cpu or no
// memory, those with the most pods first. Each of the pods is shown to see.
func (s storedObjects) podsWithoutRequests(ctx context.Context, see func(corev1.Pod)) (pods int,
	out []doctor.MissingRequests, err error) {
	found := map[doctor.MissingRequests]int{}
	err = s.forEach(ctx, atPods, func(o *unstructured.Unstructured) {
		var p corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p) != nil ||
			p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			return
		}
		pods++
		see(p)
		if lacks := missingRequests(p.Spec); lacks != "" && p.Annotations["kubernetes.io/config.mirror"] == "" {
			found[doctor.MissingRequests{Namespace: p.Namespace, Owner: ownerOf(p), Lacks: lacks}]++
		}
	})
	for l, n := range found {
		l.Pods = n
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b doctor.MissingRequests) int {
		return cmp.Or(b.Pods-a.Pods, strings.Compare(a.Namespace+"/"+a.Owner+a.Lacks, b.Namespace+"/"+b.Owner+b.Lacks))
	})
	return pods, out, err
}

// missingRequests says which of cpu and memory no container of the pod asks for.
func missingRequests(p corev1.PodSpec) string {
	has := map[corev1.ResourceName]bool{}
	note := func(r corev1.ResourceList) {
		for name, q := range r {
			has[name] = has[name] || !q.IsZero()
		}
	}
	for _, c := range p.Containers {
		note(c.Resources.Requests)
	}
	if p.Resources != nil {
		note(p.Resources.Requests)
	}
	switch {
	case !has[corev1.ResourceCPU] && !has[corev1.ResourceMemory]:
		return "cpu and memory"
	case !has[corev1.ResourceCPU]:
		return "cpu"
	case !has[corev1.ResourceMemory]:
		return "memory"
	}
	return ""
}

// ownerOf is kind/name of the controller, of the Deployment where a ReplicaSet is one's.
func ownerOf(p corev1.Pod) string {
	for _, o := range p.OwnerReferences {
		if o.Controller == nil || !*o.Controller {
			continue
		}
		if name, ok := strings.CutSuffix(o.Name, "-"+p.Labels["pod-template-hash"]); ok && o.Kind == "ReplicaSet" &&
			p.Labels["pod-template-hash"] != "" {
			return "deployment/" + name
		}
		return strings.ToLower(o.Kind) + "/" + o.Name
	}
	return "pod/" + p.Name
}

// devices are the DRA drivers with the DeviceClasses that serve extended resources.
func (s storedObjects) devices(ctx context.Context) (out doctor.Devices, err error) {
	out.Drivers, out.Classes, err = s.l.kube.DeviceDrivers(ctx)
	if apierrors.IsForbidden(err) {
		*s.denied = append(*s.denied, "list deviceclasses and resourceslices")
		return doctor.Devices{}, nil
	}
	return out, err
}

// devicesLate is the time after its node registered by which a driver should have published its devices: images of
// drivers are large, and two minutes are usual.
const devicesLate = 10 * time.Minute

// lateNodes is the claim's node if it has waited longer than devicesLate for devices, else nothing.
func lateNodes(now time.Time, c *v1.NodeClaim) []doctor.LateNode {
	drivers := c.Annotations[v1.AnnotationRequestedDRADrivers]
	registered := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionRegistered)
	initialized := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionInitialized)
	if drivers == "" || !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionRegistered) ||
		!c.DeletionTimestamp.IsZero() || meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionInitialized) ||
		now.Sub(registered.LastTransitionTime.Time) < devicesLate {
		return nil
	}
	late := doctor.LateNode{Name: c.Status.NodeName, Drivers: strings.Split(drivers, ","),
		Minutes: int(now.Sub(registered.LastTransitionTime.Time).Minutes())}
	if initialized != nil {
		late.Why = initialized.Message
	}
	return []doctor.LateNode{late}
}

// usualKarpenterNamespace is the namespace where many install Karpenter; Joiner looks there only if it is told to.
const usualKarpenterNamespace = "karpenter"

// readLeader looks for whoever holds Karpenter's leader lease.
func (s storedObjects) readLeader(ctx context.Context) doctor.Leader {
	for _, namespace := range append([]string{usualKarpenterNamespace}, defaultSettings().KarpenterNamespaces...) {
		holder, err := s.l.kube.LeaseHolder(ctx, namespace, v1.KarpenterLeaderLease)
		if err != nil {
			return doctor.Leader{Unknown: fmt.Sprintf("its leader lease cannot be read: %v", err)}
		}
		if holder != "" {
			return doctor.Leader{Namespace: namespace, Holder: holder}
		}
	}
	return doctor.Leader{}
}

// factsTime returns the time of the facts.
func factsTime() time.Time { return time.Now().UTC() }

// readRollouts are the NodeRollouts with what is not right about them; none where the cluster does not know the kind.
func (s storedObjects) readRollouts(ctx context.Context) (out []doctor.Rollout, err error) {
	err = s.forEach(ctx, atRollouts, func(o *unstructured.Unstructured) {
		var r v1alpha1.NodeRollout
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r) != nil {
			return // the CRD would not have let it in
		}
		d := doctor.Rollout{Name: r.Name, Seen: len(r.Status.Conditions) > 0}
		for _, k := range r.Status.Conditions {
			if k.Status != "True" {
				d.Problems = append(d.Problems, doctor.Problem{Condition: k.Type, Message: k.Message})
			}
		}
		if r.Status.Phase == cluster.RolloutHalted || r.Status.Phase == cluster.RolloutRollingBack {
			d.Stopped = r.Status.Message
		}
		out = append(out, d)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// isBounded reports whether something bounds what the nodes of the NodePool are or cost.
func isBounded(pool *unstructured.Unstructured) bool {
	limits, _, _ := unstructured.NestedMap(pool.Object, "spec", "limits")
	_, fixed, _ := unstructured.NestedFieldNoCopy(pool.Object, "spec", "replicas")
	return len(limits) > 0 || fixed || pool.GetAnnotations()[v1.AnnotationLimitUSD] != ""
}

// readPools are the NodePools with what is not right about them.
func (s storedObjects) readPools(ctx context.Context) (out []doctor.NodePool, err error) {
	err = s.forEach(ctx, atPools, func(o *unstructured.Unstructured) {
		p := doctor.NodePool{Name: o.GetName(), Unknown: annotations.UnknownOnPool(o.GetAnnotations()),
			Bounded: isBounded(o)}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		ready := false
		for _, c := range conditions {
			k, _ := c.(map[string]any)
			if k["type"] == "Ready" {
				ready = k["status"] == "True"
			} else if k["type"] == v1.ConditionDisruptionValid && k["status"] == "False" {
				p.Disruption = fmt.Sprint(k["message"])
			} else if k["status"] == "False" && k["type"] != "NodeRegistrationHealthy" {
				p.Problem = fmt.Sprintf("%v: %v", k["type"], k["message"])
			}
		}
		switch {
		case ready:
			p.Problem = ""
		case p.Problem == "":
			p.Problem = "nobody has looked at it yet"
		}
		out = append(out, p)
	})
	return out, err
}
