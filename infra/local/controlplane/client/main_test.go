package client_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"joiner.sh/infra/local/controlplane/client"
)

// parentEnv makes the test binary play a program that starts a plane in the directory it names, and is then killed.
const parentEnv = "PLANECTL_TEST_PARENT"

// binaryEnv is the path of joiner-plane for that program.
const binaryEnv = "PLANECTL_TEST_BINARY"

const (
	poll     = 20 * time.Millisecond
	patience = 4 * time.Minute
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		playParent(dir)
	}
	os.Exit(client.RunTests(m))
}

// playParent never returns: it is to be killed. Without a reader on its standard input it would be a leak, so it ends
// with that too.
func playParent(dir string) {
	o := client.Options{Binary: os.Getenv(binaryEnv), Dir: dir, WithoutKwok: true, RemoveDir: true}
	if _, err := client.StartPlane(context.Background(), o); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(1)
}

// cluster is the shared plane seen by one test.
type cluster struct {
	*kubernetes.Clientset
	plane *client.Plane
	name  string // of the test's own namespace, of its node, and of the label that ties its pods to that node
}

func newCluster(t testing.TB, name string) cluster {
	t.Helper()
	plane := client.ForTest(t)
	c := cluster{Clientset: clientOf(t, plane), plane: plane}
	namespace, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.name = namespace.Name
	t.Cleanup(func() { // the plane may go on living, when it was given to the tests
		_ = c.CoreV1().Namespaces().Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
	eventually(t, "a service account in the new namespace", func(ctx context.Context) (string, bool) {
		_, err := c.CoreV1().ServiceAccounts(c.name).Get(ctx, "default", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
	return c
}

func clientOf(t testing.TB, p *client.Plane) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// addNode makes a node that kwok plays and that only this test's pods ask for.
func (c cluster) addNode(t testing.TB, cpu, pods string) {
	t.Helper()
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse(pods),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        c.name,
			Labels:      map[string]string{"test": c.name},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
	if _, err := c.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CoreV1().Nodes().Delete(context.Background(), c.name, metav1.DeleteOptions{}) })
}

// podSpec is a container that only this test's node takes.
func (c cluster) podSpec(graceSec int64) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector:                  map[string]string{"test": c.name},
		TerminationGracePeriodSeconds: &graceSec,
		Containers: []corev1.Container{{
			Name:  "pause",
			Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"),
			}},
		}},
	}
}

// waitPods waits until exactly n pods exist and each satisfies the predicate.
func (c cluster) waitPods(t testing.TB, n int, what string, is func(*corev1.Pod) bool) []corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	eventually(t, fmt.Sprintf("%d pods %s", n, what), func(ctx context.Context) (string, bool) {
		var err error
		if pods, err = c.CoreV1().Pods(c.name).List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error(), false
		}
		good := 0
		for i := range pods.Items {
			if is(&pods.Items[i]) {
				good++
			}
		}
		return fmt.Sprintf("%d of %d", good, len(pods.Items)), good == n && len(pods.Items) == n
	})
	return pods.Items
}

// eventually polls until the condition holds; the test fails with the condition's last words when it does not.
func eventually(t testing.TB, what string, condition func(context.Context) (said string, ok bool)) {
	t.Helper()
	said := ""
	err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (ok bool, err error) {
		said, ok = condition(ctx)
		return ok, nil
	})
	if err != nil {
		t.Fatalf("wait for %s: %v; last seen: %s", what, err, said)
	}
}

func isRunning(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" && p.Spec.NodeName != ""
}

func isUnschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return p.Status.Phase == corev1.PodPending
		}
	}
	return false
}
