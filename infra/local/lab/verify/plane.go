package verify

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/workload"
)

const (
	writers  = 32 // requests under way at once
	poll     = 200 * time.Millisecond
	patience = 6 * time.Minute // for nodes to be ready and daemons to be there
)

// plane is the cluster, seen by its administrator.
type plane struct {
	kubernetes.Interface
	joiner  *kube.Client // as the functions have it
	daemons []*appsv1.DaemonSet
}

func newPlane(config *rest.Config) (*plane, error) {
	c := rest.CopyConfig(config)
	c.QPS, c.Burst = -1, 0 // no limit on this side
	c.ContentType = "application/vnd.kubernetes.protobuf"
	k, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make kubernetes client: %w", err)
	}
	own, err := rest.TransportFor(c)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	// The administrator's certificate says who it is; the functions' client insists on a token as well.
	joiner, err := kube.New(kube.Config{Endpoint: c.Host, CA: c.CAData, UserAgent: "verify-plan",
		Token: func(context.Context) (string, time.Time, error) { return "none", time.Now().Add(time.Hour), nil },
		Wrap:  func(http.RoundTripper) http.RoundTripper { return own }})
	if err != nil {
		return nil, fmt.Errorf("make the functions' client: %w", err)
	}
	return &plane{Interface: k, joiner: joiner}, nil
}

// admitPods makes what pods need before they can be made: namespaces with service accounts, and priority classes.
func (c *plane) admitPods(ctx context.Context, pods []*corev1.Pod, daemons []*appsv1.DaemonSet) error {
	accounts, classes := map[types.NamespacedName]bool{}, map[string]int32{}
	want := func(namespace string, s corev1.PodSpec) {
		name := s.ServiceAccountName
		if name == "" {
			name = "default"
		}
		accounts[types.NamespacedName{Namespace: namespace, Name: name}] = true
		if p := s.PriorityClassName; p != "" && !strings.HasPrefix(p, "system-") {
			classes[p] = 0
			if s.Priority != nil {
				classes[p] = *s.Priority
			}
		}
	}
	for _, p := range pods {
		want(p.Namespace, p.Spec)
	}
	for _, d := range daemons {
		want(d.Namespace, d.Spec.Template.Spec)
	}
	for name, value := range classes {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := c.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); isUnexpected(err) {
			return fmt.Errorf("create priority class %s: %w", name, err)
		}
	}
	for a := range accounts {
		if err := c.createAccount(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// createAccount makes a namespace and a service account in it. The default one is made by a controller and waited for.
func (c *plane) createAccount(ctx context.Context, a types.NamespacedName) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	if _, err := c.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); isUnexpected(err) {
		return fmt.Errorf("create namespace %s: %w", a.Namespace, err)
	}
	accounts := c.CoreV1().ServiceAccounts(a.Namespace)
	if a.Name != "default" {
		_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: a.Name}},
			metav1.CreateOptions{})
		if isUnexpected(err) {
			return fmt.Errorf("create service account %s: %w", a, err)
		}
	}
	return pollUntil(ctx, "service account "+a.String(), func(ctx context.Context) (string, error) {
		_, err := accounts.Get(ctx, a.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "it is not there", nil
		}
		return "", err
	})
}

func isUnexpected(err error) bool { return err != nil && !apierrors.IsAlreadyExists(err) }

func (c *plane) createDaemonSet(ctx context.Context, d *appsv1.DaemonSet) error {
	made, err := c.AppsV1().DaemonSets(d.Namespace).Create(ctx, d, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create daemon set %s/%s: %w", d.Namespace, d.Name, err)
	}
	c.daemons = append(c.daemons, made)
	return nil
}

// createNodes makes the nodes, still closed.
func (c *plane) createNodes(ctx context.Context, nodes []*corev1.Node) error {
	return forEach(nodes, func(n *corev1.Node) error {
		if _, err := c.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", n.Name, err)
		}
		return nil
	})
}

// awaitNodes waits until the nodes are ready and every DaemonSet has its pod there, as it would on nodes that take a
// minute to boot.
func (c *plane) awaitNodes(ctx context.Context, nodes []*corev1.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	if err := c.waitNodes(ctx, "be ready", nodes, isNodeReady); err != nil {
		return err
	}
	return c.waitDaemons(ctx, nodes)
}

// openNodes lets all pods onto the nodes.
func (c *plane) openNodes(ctx context.Context, nodes []*corev1.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	open := []byte(`{"spec":{"unschedulable":null}}`)
	if err := forEach(nodes, func(n *corev1.Node) error {
		if _, err := c.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, open,
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("open node %s: %w", n.Name, err)
		}
		return nil
	}); err != nil {
		return err
	}
	wanted := map[string][]corev1.Taint{}
	for _, n := range nodes {
		wanted[n.Name] = n.Spec.Taints
	}
	return c.waitNodes(ctx, "be open", nodes, func(n *corev1.Node) bool {
		return !n.Spec.Unschedulable && isNodeReady(n) && len(n.Spec.Taints) == len(wanted[n.Name])
	})
}

func isNodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (c *plane) waitNodes(ctx context.Context, what string, nodes []*corev1.Node, is func(*corev1.Node) bool) error {
	among := map[string]bool{}
	for _, n := range nodes {
		among[n.Name] = true
	}
	return pollUntil(ctx, fmt.Sprintf("%d nodes to %s", len(nodes), what), func(ctx context.Context) (string, error) {
		list, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		good := 0
		for i := range list.Items {
			if n := &list.Items[i]; among[n.Name] && is(n) {
				good++
			}
		}
		if good < len(nodes) {
			return fmt.Sprintf("%d are", good), nil
		}
		return "", nil
	})
}

// createPods makes the pods in about their order. It returns those that the API server does not take, with its words.
func (c *plane) createPods(ctx context.Context, pods []*corev1.Pod) (refused map[string]string, err error) {
	refused = map[string]string{}
	var lock sync.Mutex
	err = forEach(pods, func(p *corev1.Pod) error {
		_, err := c.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		switch {
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
			lock.Lock()
			defer lock.Unlock()
			refused[workload.PodKey(p)] = err.Error()
		case err != nil:
			return fmt.Errorf("create pod %s: %w", workload.PodKey(p), err)
		}
		return nil
	})
	return refused, err
}

// forEach does the work for every item, several at once, beginning in order. It returns the first error.
func forEach[T any](list []T, do func(T) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, 1)
	slots := make(chan struct{}, writers)
	for _, item := range list {
		slots <- struct{}{}
		if len(errs) > 0 {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := do(item); err != nil {
				select {
				case errs <- err:
				default: // another was first
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// pollUntil polls until nothing is missing. When that takes too long, the error holds what was missing last.
func pollUntil(ctx context.Context, what string, missing func(context.Context) (string, error)) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = missing(ctx)
		return last == "" && err == nil, err
	})
	if err != nil && last != "" {
		return fmt.Errorf("wait for %s: %w (%s)", what, err, last)
	}
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
