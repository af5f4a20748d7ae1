package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	namespace     = "default" // of pods that nobody owns, and of DaemonSets
	podsPerNode   = 30
	daemonsOnNode = 4
	podsPerApp    = 50
	imagesOnNode  = 48
	teams         = 20    // namespaces that share the apps
	budgetEach    = 3     // app has a PodDisruptionBudget
	mayBeDown     = "25%" // of its pods
)

// app is one ReplicaSet, or DaemonSet, with its pods.
type app struct {
	kind, namespace, name string
	uid                   types.UID
	replicas              int
	milliCPU              int64
}

func newApp(kind, name string, replicas int, milliCPU int64) app {
	return app{kind: kind, namespace: namespace, name: name, uid: newUID(), replicas: replicas, milliCPU: milliCPU}
}

// teamApp is the i-th ReplicaSet, in the namespace of its team.
func teamApp(i, replicas int) app {
	a := newApp("ReplicaSet", fmt.Sprintf("app-%04d", i), replicas, int64(220+i*37%91))
	a.namespace = teamNamespace(i % teams)
	return a
}

func teamNamespace(i int) string { return fmt.Sprintf("team-%02d", i) }

func newUID() types.UID { return types.UID(uuid.NewString()) }

func (a app) podLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": a.name, "app.kubernetes.io/part-of": "scale",
		"pod-template-hash": "5d9c7b8f6d"}
}

// podTemplate is a pod of the size that pods have in clusters: probes, environment, volumes and a sidecar.
func (a app) podTemplate() corev1.PodTemplateSpec {
	yes, grace := true, int64(30)
	limits := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(a.milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("256Mi")}
	var env []corev1.EnvVar
	for i := range 14 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_%d_ENDPOINT", i),
			Value: fmt.Sprintf("http://%s-%d.default.svc.cluster.local:8080", a.name, i)})
	}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz",
		Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}}, TimeoutSeconds: 1, PeriodSeconds: 10,
		SuccessThreshold: 1, FailureThreshold: 3}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: a.podLabels()},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			SchedulerName:   "default-scheduler",
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes}, TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-config"}}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: "111122223333.dkr.ecr.us-west-2.amazonaws.com/" + a.name + ":v1.42.7",
				ImagePullPolicy: corev1.PullIfNotPresent, Env: env, LivenessProbe: probe, ReadinessProbe: probe,
				Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app", ReadOnly: true},
					{Name: "scratch", MountPath: "/tmp"}},
				TerminationMessagePath:   "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
			Tolerations: []corev1.Toleration{
				tolerateTaint("node.kubernetes.io/not-ready"), tolerateTaint("node.kubernetes.io/unreachable")},
		},
	}
}

func tolerateTaint(key string) corev1.Toleration {
	seconds := int64(300)
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: &seconds}
}

// replicaSet is what the pods of an app belong to.
func (a app) replicaSet(now metav1.Time) *appsv1.ReplicaSet {
	n := int32(a.replicas)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.namespace, UID: a.uid, CreationTimestamp: now,
			Generation: 1},
		Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: a.podLabels()},
			Template: a.podTemplate()},
		Status: appsv1.ReplicaSetStatus{Replicas: n, FullyLabeledReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			ObservedGeneration: 1},
	}
}

func (a app) daemonSet(now metav1.Time) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.namespace, UID: a.uid, CreationTimestamp: now,
			Generation: 1},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: a.podLabels()},
			Template:       a.podTemplate(),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}},
	}
}

func (a app) newBudget(now metav1.Time) *policyv1.PodDisruptionBudget {
	most := intstr.FromString(mayBeDown)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.namespace, UID: newUID(),
			CreationTimestamp: now, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most,
			Selector: &metav1.LabelSelector{MatchLabels: a.podLabels()}},
	}
}

// newPod is the n-th pod of the app, which runs on the node, with what controllers, scheduler and kubelet wrote into
// it.
func (a app) newPod(n int, node string, now metav1.Time) *corev1.Pod {
	t, yes := a.podTemplate(), true
	spec := t.Spec
	spec.NodeName = node
	kind := "apps/v1"
	name := fmt.Sprintf("%s-%s", a.name, strings.ToLower(string(newUID())[:8]))
	ready := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	address := fmt.Sprintf("10.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255)
	var owners []metav1.OwnerReference
	if a.kind != "" {
		owners = []metav1.OwnerReference{{APIVersion: kind, Kind: a.kind, Name: a.name, UID: a.uid, Controller: &yes,
			BlockOwnerDeletion: &yes}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: a.name + "-", Namespace: a.namespace, UID: newUID(),
			CreationTimestamp: now, Generation: 1,
			Labels: t.Labels, Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080",
				"checksum/config": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"},
			OwnerReferences: owners,
			ManagedFields: []metav1.ManagedFieldsEntry{
				managedEntry("kube-controller-manager", "", now, podFields),
				managedEntry("kubelet", "status", now, podStatusFields)},
		},
		Spec: spec,
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: address, StartTime: &now,
			QOSClass: corev1.PodQOSGuaranteed,
			PodIPs:   []corev1.PodIP{{IP: address}},
			Conditions: []corev1.PodCondition{ready(corev1.PodReadyToStartContainers), ready(corev1.PodInitialized),
				ready(corev1.PodReady), ready(corev1.ContainersReady), ready(corev1.PodScheduled)},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Started: &yes,
				Image:       spec.Containers[0].Image,
				ImageID:     "111122223333.dkr.ecr.us-west-2.amazonaws.com/" + a.name + "@sha256:" + strings.Repeat("9f", 32),
				ContainerID: "containerd://" + strings.Repeat("7a", 32),
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
		},
	}
}

// managedEntry is an entry of managedFields.
func managedEntry(by, subresource string, now metav1.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Time: &now, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
}

const (
	podFields = `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},` +
		`"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{}}},` +
		`"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{}},"f:name":{},` +
		`"f:ports":{".":{}},"f:readinessProbe":{".":{}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},` +
		`"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{}}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},` +
		`"f:securityContext":{".":{},"f:runAsNonRoot":{}},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{}}}}`
	podStatusFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
		`"k:{\"type\":\"Initialized\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},` +
		`"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{}},"f:startTime":{}}}`
)

// copyNode is the node of another instance, with the images that a node has after a while.
func copyNode(of *corev1.Node, name, providerID, address string, now metav1.Time) *corev1.Node {
	n := of.DeepCopy()
	n.Name, n.UID, n.ResourceVersion, n.CreationTimestamp = name, newUID(), "", now
	n.Labels[corev1.LabelHostname] = name
	delete(n.Annotations, "kwok.x-k8s.io/node") // this program plays its kubelet
	n.Spec.ProviderID = providerID
	n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.MachineID = string(newUID()), string(newUID())
	for i := range n.Status.Addresses {
		if a := &n.Status.Addresses[i]; a.Type == corev1.NodeInternalIP {
			a.Address = address
		} else {
			a.Address = name
		}
	}
	n.Status.Images = nil
	for i := range imagesOnNode {
		image := fmt.Sprintf("111122223333.dkr.ecr.us-west-2.amazonaws.com/platform/service-%03d", i)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: int64(i+1) << 20,
			Names: []string{image + "@sha256:" + strings.Repeat("4c", 32), image + fmt.Sprintf(":v1.%d.0-20260714-5d9c7b8f6d", i)}})
	}
	return n
}

// copyClaim is the NodeClaim of another node and instance, from JSON to JSON.
func copyClaim(of []byte, swaps ...string) ([]byte, error) {
	text := strings.NewReplacer(swaps...).Replace(string(of))
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, fmt.Errorf("copy NodeClaim: %w", err)
	}
	meta := o["metadata"].(map[string]any)
	delete(meta, "resourceVersion") // the store's
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	return json.Marshal(o)
}
