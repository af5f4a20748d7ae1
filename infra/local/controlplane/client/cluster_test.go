package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"joiner.sh/infra/local/controlplane/client"
)

func (c cluster) addDeployment(t testing.TB, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: c.podSpec(0)},
		},
	}
	if _, err := c.AppsV1().Deployments(c.name).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The whole of it: the controllers make pods, the scheduler finds no node and says so, a fake node turns Ready with the
// size it was made with, and its pods run.
func TestPodsWaitForANodeAndRunOnIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "scheduling")
	c.addDeployment(t, 50)
	c.waitPods(t, 50, "unschedulable", isUnschedulable)

	c.addNode(t, "16", "58")
	c.waitPods(t, 50, "running", isRunning)

	node, err := c.CoreV1().Nodes().Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Status.Allocatable.Cpu().String() + " " + node.Status.Allocatable.Pods().String(); got != "16 58" {
		t.Errorf("allocatable cpu and pods = %s, want 16 58", got)
	}
	eventually(t, "the node's heartbeat", func(ctx context.Context) (string, bool) {
		_, err := c.CoordinationV1().Leases("kube-node-lease").Get(ctx, node.Name, metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
}

// A deleted pod lives as long as its containers take to stop: pause ends at SIGTERM, after its preStop hook.
func TestADeletedPodLivesUntilItsContainersStop(t *testing.T) {
	t.Parallel()
	stubborn := map[string]string{"local.joiner.sh/ignores-sigterm": "true"}
	for _, test := range []struct {
		name        string
		graceSec    int64
		preStop     string
		annotations map[string]string
		least, most time.Duration // the deletion timestamp has whole seconds, so up to one second is lost
	}{
		{"prompt", 600, "", nil, 0, patience},
		{"hook", 600, "sleep 3", nil, 1900 * time.Millisecond, patience},
		{"cut", 3, "sleep 600", nil, 1900 * time.Millisecond, patience},
		{"stubborn", 3, "", stubborn, 1900 * time.Millisecond, patience},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "stop-"+test.name)
			c.addNode(t, "4", "10")
			spec := c.podSpec(test.graceSec)
			if test.preStop != "" {
				spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
					Exec: &corev1.ExecAction{Command: []string{"sh", "-c", test.preStop}}}}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slow", Annotations: test.annotations}, Spec: spec}
			if _, err := c.CoreV1().Pods(c.name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			c.waitPods(t, 1, "running", isRunning)
			deleted := time.Now()
			if err := c.CoreV1().Pods(c.name).Delete(t.Context(), "slow", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			c.waitPods(t, 0, "left", isRunning)
			if took := time.Since(deleted); took < test.least || took > test.most {
				t.Errorf("the pod was gone after %s, want %s to %s", took, test.least, test.most)
			}
		})
	}
}

func TestEvictionKeepsTheBudget(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "eviction")
	c.addNode(t, "4", "10")
	c.addDeployment(t, 3)
	pods := c.waitPods(t, 3, "running", isRunning)

	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &intstr.IntOrString{IntVal: 3},
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	budgets := c.PolicyV1().PodDisruptionBudgets(c.name)
	budget, err := budgets.Create(t.Context(), budget, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.waitBudget(t, budget.Generation, 0)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pods[0].Name, Namespace: c.name}}
	if err := c.PolicyV1().Evictions(c.name).Evict(t.Context(), eviction); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction that breaks the budget: %v, want 429", err)
	}

	patch := []byte(`{"spec":{"minAvailable":2}}`)
	budget, err = budgets.Patch(t.Context(), "web", "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.waitBudget(t, budget.Generation, 1)
	if err := c.PolicyV1().Evictions(c.name).Evict(t.Context(), eviction); err != nil {
		t.Errorf("eviction within the budget: %v", err)
	}
}

// waitBudget waits until the controller has judged this generation of the budget on three healthy pods.
func (c cluster) waitBudget(t *testing.T, generation int64, allowed int32) {
	t.Helper()
	eventually(t, "the budget's status", func(ctx context.Context) (string, bool) {
		b, err := c.PolicyV1().PodDisruptionBudgets(c.name).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		s := b.Status
		return fmt.Sprintf("%+v", s), s.ObservedGeneration == generation && s.CurrentHealthy == 3 && s.DisruptionsAllowed == allowed
	})
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "strangers")
	if err := listNodes(t, c.plane.RESTConfig(), "k8s-aws-v1.garbage"); !apierrors.IsUnauthorized(err) {
		t.Errorf("garbage token: %v, want 401", err)
	}
	if err := listNodes(t, c.plane.RESTConfig(), ""); !apierrors.IsForbidden(err) {
		t.Errorf("no token: %v, want 403 as on EKS", err)
	}
}

// listNodes asks with the token instead of the configuration's own certificate.
func listNodes(t *testing.T, config *rest.Config, token string) error {
	t.Helper()
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	return err
}

func TestClusterDNSHasItsAddress(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "dns")
	service, err := c.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if service.Spec.ClusterIP != "10.100.0.10" || c.plane.State().ClusterDNS != "10.100.0.10" {
		t.Errorf("address = %s, state says %s, want 10.100.0.10", service.Spec.ClusterIP, c.plane.State().ClusterDNS)
	}
	version, err := c.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"1.36": "v1.36.3", "1.37": "v1.37.2"}[client.Minor()]; version.GitVersion != want {
		t.Errorf("server version = %s, want %s (is the version set when linking?)", version.GitVersion, want)
	}
}

// BenchmarkPodsRunning measures from the creation of a deployment of 2,000 pods, with room for it, to the last one
// being ready. Run it with -benchtime=1x. It watches the deployment's count: listing the pods would slow down what it
// measures.
func BenchmarkPodsRunning(b *testing.B) {
	for range b.N {
		b.StopTimer()
		c := newCluster(b, "bench")
		c.addNode(b, "64", "3000")
		b.StartTimer()
		c.addDeployment(b, 2000)
		eventually(b, "2000 ready pods", func(ctx context.Context) (string, bool) {
			d, err := c.AppsV1().Deployments(c.name).Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			return fmt.Sprint(d.Status.ReadyReplicas), d.Status.ReadyReplicas == 2000
		})
	}
	b.ReportMetric(2000*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}
