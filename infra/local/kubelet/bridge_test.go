package kubelet

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/controlplane/client"
)

func TestMain(m *testing.M) { os.Exit(client.RunTests(m)) }

// stage is a bridge on the shared plane.
type stage struct {
	*Bridge
	api   kubernetes.Interface
	plane *client.Plane
	log   *cloudtest.Log
}

func newStage(t *testing.T, change func(*Options)) stage {
	t.Helper()
	p := client.ForTest(t)
	api, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	log := &cloudtest.Log{}
	o := Options{
		Config: p.RESTConfig(), Cluster: Cluster{Name: "demo", Endpoint: p.ServerURL(), CA: p.CA()}, Region: "us-west-2", Log: log,
		ZoneID: func(zone string) string { return map[string]string{"us-west-2b": "usw2-az2"}[zone] },
		Facts: func(kind string) (Facts, bool) {
			return Facts{VCPU: 2, MemoryMiB: 8192, Arch: "amd64", PodsByENI: 29}, kind == "m5.large"
		},
	}
	if change != nil {
		change(&o)
	}
	b, err := NewBridge(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return stage{Bridge: b, api: api, plane: p, log: log}
}

// instance makes one with user data for the shared plane. Its node is deleted at the end of the test.
func (s stage) instance(t *testing.T, extra string) Instance {
	t.Helper()
	name := fmt.Sprintf("ip-%08x.us-west-2.compute.internal", crc32.ChecksumIEEE([]byte(t.Name())))
	t.Cleanup(func() {
		err := s.api.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	text := fmt.Sprintf(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: demo, apiServerEndpoint: %q, certificateAuthority: %q, cidr: 10.100.0.0/16}
  kubelet:
    config:
      maxPods: 20
      registerWithTaints: [{key: dedicated, value: test, effect: NoSchedule}, {key: agent.example.com/wait, effect: NoExecute}]
    flags: ['--node-labels="karpenter.sh/nodepool=default%s"']
`, s.plane.ServerURL(), base64.StdEncoding.EncodeToString(s.plane.CA()), extra)
	return Instance{
		ID: "i-" + name, Type: "m5.large", Zone: "us-west-2b", Lifecycle: "spot", PrivateDNS: name, PrivateIP: "10.0.1.7",
		UserData: text, State: "running",
	}
}

func (i Instance) in(state string) Instance {
	i.State = state
	return i
}

// awaitNode waits until the node fits; a nil node stands for none.
func (s stage) awaitNode(t *testing.T, name, what string, fits func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		n, err := s.api.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			n, err = nil, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if fits(n) {
			return n
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: waited in vain for %s; it is %+v\n%s", name, what, n, s.log)
		}
	}
}

func readiness(n *corev1.Node) (corev1.ConditionStatus, string) {
	if n == nil {
		return "", ""
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status, c.Reason
		}
	}
	return "", ""
}

func isReady(n *corev1.Node) bool {
	status, _ := readiness(n)
	return status == corev1.ConditionTrue
}

func taintKeys(n *corev1.Node) []string {
	var out []string
	for _, t := range n.Spec.Taints {
		out = append(out, t.Key)
	}
	slices.Sort(out)
	return out
}

func TestInstanceBecomesANode(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(o *Options) {
		o.Agents = []Agent{{TaintKey: "agent.example.com/wait", After: 50 * time.Millisecond}}
	})
	i := s.instance(t, ",team=a")
	s.AnnounceInstance(i.in("pending"))
	s.AnnounceInstance(i)
	n := s.awaitNode(t, i.PrivateDNS, "readiness and its own taint only", func(n *corev1.Node) bool {
		return isReady(n) && slices.Equal(taintKeys(n), []string{"dedicated"})
	})
	if n.Spec.ProviderID != "aws:///us-west-2b/"+i.ID {
		t.Errorf("provider id = %s", n.Spec.ProviderID)
	}
	for key, want := range map[string]string{
		"karpenter.sh/nodepool": "default", "team": "a", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"kubernetes.io/hostname": i.PrivateDNS, "node.kubernetes.io/instance-type": "m5.large",
		"topology.kubernetes.io/zone": "us-west-2b", "topology.kubernetes.io/region": "us-west-2", "topology.k8s.aws/zone-id": "usw2-az2",
	} {
		if n.Labels[key] != want {
			t.Errorf("label %s = %q, want %q", key, n.Labels[key], want)
		}
	}
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
	if got := amounts(n.Status.Allocatable, names...); got != "1930m 7108Mi 20" {
		t.Errorf("allocatable = %s", got)
	}
	if n.Status.NodeInfo.KubeletVersion != "v"+client.Minor()+".0-eks-local" {
		t.Errorf("kubelet version = %s", n.Status.NodeInfo.KubeletVersion)
	}

	s.AnnounceInstance(i) // told twice
	s.work.Wait()
	if strings.Contains(s.log.String(), "is back") {
		t.Errorf("it joined twice:\n%s", s.log)
	}
	s.AnnounceInstance(i.in("shutting-down"))
	s.awaitNode(t, i.PrivateDNS, "NotReady with the taint of the node controller", func(n *corev1.Node) bool {
		status, reason := readiness(n)
		return status == corev1.ConditionFalse && reason == "KubeletNotReady" && slices.Contains(taintKeys(n), corev1.TaintNodeNotReady)
	})
	s.AnnounceInstance(i.in("terminated"))
	s.awaitNode(t, i.PrivateDNS, "its end", func(n *corev1.Node) bool { return n == nil })
}

func TestStoppedInstanceComesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	s.awaitNode(t, i.PrivateDNS, "readiness", isReady)
	s.AnnounceInstance(i.in("stopping"))
	s.AnnounceInstance(i.in("stopped"))
	s.awaitNode(t, i.PrivateDNS, "the shutdown taint", func(n *corev1.Node) bool {
		return !isReady(n) && slices.Contains(taintKeys(n), shutdownTaint)
	})
	s.AnnounceInstance(i.in("pending"))
	s.AnnounceInstance(i)
	s.awaitNode(t, i.PrivateDNS, "readiness again", func(n *corev1.Node) bool {
		return isReady(n) && !slices.Contains(taintKeys(n), shutdownTaint)
	})
}

// Devices of a node with DRA drivers are in their slices, which end with the Node, and not among what the kubelet offers.
func TestDriversPublishDevices(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(o *Options) {
		o.Facts = func(string) (Facts, bool) {
			return Facts{VCPU: 4, MemoryMiB: 16384, Arch: "amd64", PodsByENI: 29, Devices: map[string]int64{"nvidia.com/gpu": 1}}, true
		}
		o.Behavior = func(Instance) Behavior {
			spec := resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", Pool: resourcev1.ResourcePool{ResourceSliceCount: 2}}
			one, two := spec, spec
			one.Devices, two.Devices = []resourcev1.Device{{Name: "first"}}, []resourcev1.Device{{Name: "second"}}
			return Behavior{DRA: true, Slices: []Slice{{After: time.Second, Spec: two}, {Spec: one}}}
		}
	})
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	n := s.awaitNode(t, i.PrivateDNS, "readiness", isReady)
	s.work.Wait()
	all, err := s.api.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil {
		t.Fatal(err)
	}
	got := amounts(n.Status.Capacity, "nvidia.com/gpu")
	for _, slice := range all.Items {
		got += fmt.Sprint(" ", slice.Spec.Pool.Name == n.Name, slice.OwnerReferences[0].UID == n.UID, slice.Spec.Devices[0].Name)
	}
	if want := "0 true truefirst true truesecond"; got != want {
		t.Errorf("GPUs and slices are %s, want %s", got, want)
	}
}

// The Node is made under the kubelet's own name, so the API server's NodeRestriction has its say.
func TestNodeRestrictionJudges(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	i := s.instance(t, "")
	n, err := s.prepareNode(i, Behavior{})
	if err != nil {
		t.Fatal(err)
	}
	n.Labels["node-restriction.kubernetes.io/x"] = "y"
	if _, err := s.createNode(t.Context(), i, n); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "node-restriction.kubernetes.io/x") {
		t.Errorf("restricted label: %v", err)
	}
	delete(n.Labels, "node-restriction.kubernetes.io/x")
	n.Name = "another-name"
	if _, err := s.createNode(t.Context(), i, n); !apierrors.IsForbidden(err) {
		t.Errorf("another node's name: %v", err)
	}
}

func TestInstancesThatDoNotJoin(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		options func(*Options)
		change  func(*Instance)
		want    string
	}{
		{"told so", func(o *Options) { o.Behavior = func(Instance) Behavior { return Behavior{NeverJoin: true} } }, nil, "told so"},
		{"cluster", nil, func(i *Instance) { i.UserData = strings.Replace(i.UserData, "name: demo", "name: prod", 1) }, `for cluster "prod"`},
		{"user data", nil, func(i *Instance) { i.UserData = "hello" }, "parse user data"},
		{"label", nil, func(i *Instance) {
			i.UserData = strings.Replace(i.UserData, "karpenter.sh/nodepool", "node-restriction.kubernetes.io/pool", 1)
		}, "unknown 'kubernetes.io' or 'k8s.io' label"},
		{"type", nil, func(i *Instance) { i.Type = "x9.huge" }, `instance type "x9.huge" is unknown`},
		{"role", func(o *Options) { o.Boot = func(Instance) error { return errors.New("no access entry") } }, nil, "boot: no access entry"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.options)
			i := s.instance(t, "")
			if c.change != nil {
				c.change(&i)
			}
			s.AnnounceInstance(i)
			s.work.Wait() // until the bridge has done what it does for this state
			if got := s.JoinFailures()[i.ID]; !strings.Contains(got, c.want) {
				t.Errorf("failure = %q, want it to contain %q", got, c.want)
			}
			if !strings.Contains(s.log.String(), c.want) {
				t.Errorf("log = %q", s.log)
			}
			if _, err := s.api.CoreV1().Nodes().Get(t.Context(), i.PrivateDNS, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("node: %v, want none", err)
			}
		})
	}
}

func TestNeverReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	s.SetBehavior(func(Instance) Behavior { return Behavior{NeverReady: true} })
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	s.awaitNode(t, i.PrivateDNS, "registration and the taint of the node controller", func(n *corev1.Node) bool {
		return n != nil && n.Labels[corev1.LabelTopologyZone] == "us-west-2b" && slices.Contains(taintKeys(n), corev1.TaintNodeNotReady) && !isReady(n)
	})
	if status, reason := readiness(s.awaitNode(t, i.PrivateDNS, "it", func(n *corev1.Node) bool { return n != nil })); status != corev1.ConditionFalse || reason != "KubeletNotReady" {
		t.Errorf("ready = %s %s", status, reason)
	}
	s.AnnounceInstance(i.in("terminated"))
	s.awaitNode(t, i.PrivateDNS, "its end", func(n *corev1.Node) bool { return n == nil })
}

func TestTerminatedWhileBooting(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(o *Options) {
		o.BootDelay = time.Minute
		o.Behavior = func(Instance) Behavior { return Behavior{Late: time.Hour} }
	})
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	s.AnnounceInstance(i.in("shutting-down"))
	s.AnnounceInstance(i.in("terminated"))
	s.work.Wait() // returns long before the hour
	if failure := s.JoinFailures()[i.ID]; failure != "" {
		t.Errorf("failure = %q", failure)
	}
	if _, err := s.api.CoreV1().Nodes().Get(t.Context(), i.PrivateDNS, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("node: %v, want none", err)
	}
}

func TestPodsEndWithTheirNode(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(o *Options) { o.CollectPods = true })
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	s.awaitNode(t, i.PrivateDNS, "readiness", isReady)
	pods := s.api.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(t.Name())},
		Spec: corev1.PodSpec{
			NodeName: i.PrivateDNS, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AnnounceInstance(i.in("terminated"))
	s.work.Wait()
	if _, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("pod: %v, want none", err)
	}
}

// A private name is used again by the next instance at the address; the old one's end must not touch its Node.
func TestTerminationSparesTheNextInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	s.awaitNode(t, i.PrivateDNS, "readiness", isReady)
	old := i.in("terminated")
	old.ID = "i-before"
	s.AnnounceInstance(old)
	s.work.Wait()
	s.awaitNode(t, i.PrivateDNS, "survival", isReady)
}

// Its address is given to the next instance before its Node is gone.
func TestTheNextInstanceWaitsForItsName(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	i := s.instance(t, "")
	s.AnnounceInstance(i)
	s.awaitNode(t, i.PrivateDNS, "readiness", isReady)
	next := i
	next.ID = "i-next"
	s.AnnounceInstance(next)
	s.AnnounceInstance(i.in("shutting-down"))
	s.awaitNode(t, i.PrivateDNS, "the end of the first one's readiness", func(n *corev1.Node) bool { return n != nil && !isReady(n) })
	s.AnnounceInstance(i.in("terminated"))
	s.awaitNode(t, i.PrivateDNS, "readiness of the next one's", func(n *corev1.Node) bool { return isReady(n) && n.Spec.ProviderID == next.providerID() })
	if failures := s.JoinFailures(); len(failures) > 0 {
		t.Errorf("failures = %q", failures)
	}
}
