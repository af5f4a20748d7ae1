package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	units "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/providers/kube"
)

// pendingOf are the test's own pods among those that need a node.
func (c env) pendingOf(ctx context.Context, k *kube.Client) ([]cluster.Pod, error) {
	all, err := k.PendingPods(ctx)
	return slices.DeleteFunc(all, func(p cluster.Pod) bool { return p.Namespace != c.name }), err
}

func (c env) awaitPending(t testing.TB, k *kube.Client, n int) (out []cluster.Pod) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " pending pods"), func(ctx context.Context) (string, bool) {
		var err error
		out, err = c.pendingOf(ctx, k)
		return fmt.Sprint(len(out), " ", err), len(out) == n
	})
	return out
}

// With more than one page of pods without a node beside others that have one, the question costs two pages of the
// former, in protobuf, and one of capacity buffers; and all is read.
func TestPendingPodsCostOnlyThePodsWithoutANode(t *testing.T) {
	c := newEnv(t)
	c.addNode(t, "elsewhere") // pods of a node that does not exist are collected after 40 seconds
	const pods, bound = 505, 25
	g := errgroup.Group{}
	g.SetLimit(32)
	for i := range pods {
		if i < bound {
			g.Go(func() error { c.addPod(t, fmt.Sprintf("bound-%d", i), "elsewhere", nil); return nil })
		}
		g.Go(func() error {
			c.addPod(t, fmt.Sprintf("web-%d", i), "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubetest": "nowhere"} })
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	k, r := c.client(t)
	c.awaitPending(t, k, pods)
	r.take()
	got, err := c.pendingOf(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"GET /api/v1/pods application/vnd.kubernetes.protobuf", "GET /api/v1/pods application/vnd.kubernetes.protobuf",
		"GET /apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers application/json"}
	if diff := cmp.Diff(want, r.take()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(got, func(a, b cluster.Pod) int { return strings.Compare(a.Name, b.Name) }) || got[0].Name != "web-0" {
		t.Errorf("the list starts with %s and is not sorted", got[0].Name)
	}
	all, err := k.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mine := slices.DeleteFunc(all.Pods, func(p cluster.Pod) bool { return p.Namespace != c.name })
	names := map[string]bool{}
	for _, p := range mine {
		names[p.Name] = true
	}
	if len(mine) != pods+bound || len(names) != pods+bound {
		t.Errorf("the snapshot shows %d pods of %d names, want %d", len(mine), len(names), pods+bound)
	}
	seconds := int64(0)
	if err := c.CoreV1().Pods(c.name).DeleteCollection(context.Background(),
		metav1.DeleteOptions{GracePeriodSeconds: &seconds}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshot(t *testing.T) {
	c := newEnv(t)
	k, r := c.client(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	c.addDaemon(t)
	c.addNode(t, c.name, unregistered())
	c.addBudget(t, "web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &intstr.IntOrString{Type: intstr.String, StrVal: "0%"}})
	c.addPod(t, "with-volume", "", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"beta.kubernetes.io/arch": "arm64"}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	claim := c.addClaim(t, k)
	c.readyNode(t, k, c.name)
	eventually(t, "the scheduler to give up on a pod whose volume is missing", func(ctx context.Context) (string, bool) {
		p, err := c.pendingOf(ctx, k)
		return fmt.Sprint(err), len(p) == 1
	})
	read := func() cluster.Snapshot {
		t.Helper()
		s, err := k.ReadSnapshot(t.Context())
		if err == nil {
			s, err = k.WithVolumes(t.Context(), s)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := read()
	if got := s.Pods[slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Namespace == c.name })].Unmodelled; !slices.Equal(got,
		[]string{"persistentvolumeclaim " + c.name + "/data does not exist"}) {
		t.Errorf("a pod without its volume: %q", got)
	}
	c.addVolumeClaim(t)
	c.addVolumeLimit(t, 25)
	r.take()
	s = read()
	c.checkPods(t, s)
	c.checkRest(t, s, claim)
}

func (c env) checkPods(t *testing.T, s cluster.Snapshot) {
	t.Helper()
	p := s.Pods[slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Namespace == c.name && p.Name == "with-volume" })]
	want := cluster.Pod{
		Namespace: c.name, Name: "with-volume", Labels: map[string]string{"app": "web"}, Phase: "Pending", Unscheduled: true, GraceSec: 30,
		Need:         units.List{CPU: 250, Memory: 64 << 20, Pods: 1},
		NodeSelector: map[string]string{"kubernetes.io/arch": "arm64"},
		VolumeZones:  [][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", "us-west-2a", "us-west-2b")}},
		Volumes:      []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: c.name + "/data"}},
		Tolerations: []cluster.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"},
		},
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreFields(cluster.Pod{}, "UID", "Created", "Unschedulable")); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	if p.Unschedulable == "" {
		t.Error("the scheduler's words on the pod are lost")
	}
	d := s.Daemons[slices.IndexFunc(s.Daemons, func(p cluster.Pod) bool { return p.Namespace == c.name })]
	if d.Name != "agent" || d.Owner != cluster.OwnerDaemonSet || d.Need.CPU != 50 || !d.Critical {
		t.Errorf("daemon: %+v", d)
	}
}

func (c env) checkRest(t *testing.T, s cluster.Snapshot, claim cluster.Claim) {
	t.Helper()
	pool := s.Pools[0]
	least := int64(4)
	wantPool := cluster.Pool{
		Name: c.name, UID: c.pool(t).UID, Weight: 7, Class: c.name, Message: "its EC2NodeClass " + c.name + " is not ready: it has not been looked at yet",
		Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "hello"},
		Requirements: requirements.NewSet(requirements.Of("karpenter.sh/capacity-type", "on-demand", "spot"),
			requirements.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Not: true, Min: &least}),
		Taints:  []cluster.Taint{{Key: "team", Value: "a", Effect: "NoSchedule"}},
		Limits:  units.List{CPU: 100_000, Extended: []units.Extended{{Name: "nodes", Count: 3}}},
		Limited: []string{"cpu", "nodes"}, ExpireAfter: 48 * time.Hour, TerminationGrace: c.pool(t).TerminationGrace, Hash: pool.Hash,
		Uncounted: true,
		// by default
		Disruption: cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}},
	}
	if diff := cmp.Diff(wantPool, pool); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
	maxPods := int64(42)
	wantClass := instancetypes.Class{Name: c.name, Message: "it has not been looked at yet", Unseen: true, Family: "AL2023", MaxPods: &maxPods,
		KubeReserved: map[string]string{"cpu": "100m"}, EphemeralBytes: 100 << 30, Disks: []instancetypes.Disk{{Device: "/dev/xvda", Type: "gp2", GiB: 100}}}
	if diff := cmp.Diff(wantClass, s.Classes[0]); diff != "" {
		t.Errorf("class (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]cluster.Claim{claim}, s.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	n := s.Nodes[slices.IndexFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == c.name })]
	wantNode := cluster.Node{
		Name: c.name, ProviderID: "aws:///us-west-2a/i-" + c.name, Annotations: map[string]string{"joiner.sh/seen": "yes"},
		Labels:   map[string]string{"kubetest": c.name, "kubernetes.io/hostname": c.name},
		Taints:   []cluster.Taint{{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}},
		Capacity: units.List{CPU: 4000, Memory: 8 << 30, Pods: 20}, Allocatable: units.List{CPU: 4000, Memory: 8 << 30, Pods: 20}, Ready: true,
		VolumeLimits: map[string]int64{"ebs.csi.aws.com": 25},
		Conditions: []cluster.Condition{{Type: "DiskPressure", Status: "False"}, {Type: "MemoryPressure", Status: "False"},
			{Type: "NetworkUnavailable", Status: "False"}, {Type: "PIDPressure", Status: "False"}, {Type: "Ready", Status: "True"}},
	}
	ignored := cmp.Options{cmpopts.IgnoreFields(cluster.Node{}, "UID", "Created", "ReadySince"), cmpopts.IgnoreFields(cluster.Condition{}, "Since")}
	if diff := cmp.Diff(wantNode, n, ignored); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	b := s.Budgets[slices.IndexFunc(s.Budgets, func(b cluster.PodDisruptionBudget) bool { return b.Namespace == c.name })]
	wantBudget := cluster.PodDisruptionBudget{Namespace: c.name, Name: "web", FullyBlocking: true,
		Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}}}
	if diff := cmp.Diff(wantBudget, b); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
	ns := s.Namespaces[slices.IndexFunc(s.Namespaces, func(n cluster.Namespace) bool { return n.Name == c.name })]
	if ns.Labels["team"] != "a" {
		t.Errorf("namespace: %+v", ns)
	}
}

func (c env) addDaemon(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "agent"}
	_, err := c.AppsV1().DaemonSets(c.name).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				PriorityClassName: "system-node-critical",
				NodeSelector:      map[string]string{"kubetest": "nowhere"},
				Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (c env) addBudget(t *testing.T, name string, spec policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b, err := c.PolicyV1().PodDisruptionBudgets(c.name).Create(t.Context(),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the budget to be judged", func(ctx context.Context) (string, bool) {
		b, err = c.PolicyV1().PodDisruptionBudgets(c.name).Get(ctx, name, metav1.GetOptions{})
		return fmt.Sprint(b, err), err == nil && b.Status.ObservedGeneration == b.Generation
	})
}

// addVolumeClaim makes a claim of a volume that is bound when its first pod has a node, in one of two zones.
func (c env) addVolumeClaim(t *testing.T) {
	t.Helper()
	c.applyText(t, `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NAME}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
- matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [us-west-2b, us-west-2a]}]
`)
	_, err := c.CoreV1().PersistentVolumeClaims(c.name).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &c.name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestClassesPoolsAndTheClusterItself(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	c.applyText(t, strings.ReplaceAll(strings.ReplaceAll(poolText, "kind: EC2NodeClass", "kind: OtherClass"),
		"metadata: {name: NAME}", "metadata: {name: NAME-other}"))
	pools, err := k.ListPools(t.Context())
	if err != nil || len(pools) != 1 || pools[0].Name != c.name {
		t.Errorf("pools: %v %v, want the one whose class is an EC2NodeClass", pools, err)
	}
	classes, err := k.ListClasses(t.Context())
	if err != nil || len(classes) != 1 || classes[0].Spec.Role != "node" {
		t.Errorf("classes: %v %v", classes, err)
	}
	if _, err = k.ReadClass(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), "get ec2nodeclass nobody") {
		t.Errorf("a class that does not exist: error %v", err)
	}
	if v, err := k.ReadVersion(t.Context()); err != nil || v != client.Minor() {
		t.Errorf("version %q %v, want %s", v, err, client.Minor())
	}
	dns, err := c.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := k.ReadDNSAddress(t.Context()); err != nil || a != dns.Spec.ClusterIP {
		t.Errorf("address of the DNS service: %q %v, want %s", a, err, dns.Spec.ClusterIP)
	}
}
