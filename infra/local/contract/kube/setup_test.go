// Package kube_test runs pkg/providers/kube and pkg/providers/store against a real API server: what a fake would only
// repeat.
package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/providers/kube"
)

const (
	poll     = 20 * time.Millisecond
	patience = 4 * time.Minute
	tester   = "kubetest" // service account with every right
)

func TestMain(m *testing.M) { os.Exit(client.RunTests(m)) }

// env is the shared plane as one test sees it: with everything Joiner installs, and a namespace of its own.
type env struct {
	*kubernetes.Clientset
	dynamic dynamic.Interface
	plane   *client.Plane
	name    string // of the namespace, and the prefix of what has none
}

// installed is done once: a test that changes what is installed puts it back.
var installed sync.Once

func newEnv(t *testing.T) env {
	t.Helper()
	plane := client.ForTest(t)
	c := env{plane: plane}
	var err error
	if c.Clientset, err = kubernetes.NewForConfig(plane.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if c.dynamic, err = dynamic.NewForConfig(plane.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	installed.Do(func() { c.install(t) })
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubetest-", Labels: map[string]string{"team": "a"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.name = ns.Name
	t.Cleanup(func() { _ = c.CoreV1().Namespaces().Delete(context.Background(), c.name, metav1.DeleteOptions{}) })
	eventually(t, "a service account in the new namespace", func(ctx context.Context) (string, bool) {
		_, err := c.CoreV1().ServiceAccounts(c.name).Get(ctx, "default", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
	return c
}

// install applies what a cluster needs before Joiner works in it. Doing it again changes nothing.
func (c env) install(t *testing.T) {
	t.Helper()
	objects, err := install.Objects()
	if err != nil {
		t.Fatal(err)
	}
	borrowed, err := install.Borrowed()
	if err != nil {
		t.Fatal(err)
	}
	objects = append(objects, borrowed...)
	for _, o := range objects {
		c.apply(t, o)
	}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			c.waitEstablished(t, o.GetName())
		}
	}
	_, err = c.CoreV1().ServiceAccounts(install.Namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: tester}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: tester},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: install.Namespace, Name: tester}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func (c env) apply(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	gvk := o.GroupVersionKind()
	resource := c.dynamic.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural(gvk.Kind)})
	var target dynamic.ResourceInterface = resource
	if o.GetNamespace() != "" {
		target = resource.Namespace(o.GetNamespace())
	}
	if _, err := target.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: tester, Force: true}); err != nil {
		t.Fatalf("apply %s %s: %v", gvk.Kind, o.GetName(), err)
	}
}

func plural(kind string) string {
	if strings.HasSuffix(kind, "s") {
		return strings.ToLower(kind) + "es"
	}
	if rest, ok := strings.CutSuffix(kind, "cy"); ok {
		return strings.ToLower(rest) + "cies"
	}
	return strings.ToLower(kind) + "s"
}

func (c env) waitEstablished(t *testing.T, name string) {
	t.Helper()
	crds := c.dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	eventually(t, "CRD "+name+" to be served", func(ctx context.Context) (string, bool) {
		o, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, k := range conditions {
			if m, ok := k.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return "", true
			}
		}
		return fmt.Sprint(conditions), false
	})
}

// client is the Client under test with every right, its requests recorded.
func (c env) client(t *testing.T) (*kube.Client, *recorder) {
	t.Helper()
	return c.clientWith(t, func(*kube.Config) {})
}

func (c env) clientWith(t *testing.T, change func(*kube.Config)) (*kube.Client, *recorder) {
	t.Helper()
	r := &recorder{}
	config := kube.Config{
		Endpoint: c.plane.ServerURL(), CA: c.plane.CA(), UserAgent: "kubetest",
		Token: func(ctx context.Context) (string, time.Time, error) {
			tr, err := c.CoreV1().ServiceAccounts(install.Namespace).CreateToken(ctx, tester, &authv1.TokenRequest{}, metav1.CreateOptions{})
			if err != nil {
				return "", time.Time{}, err
			}
			return tr.Status.Token, tr.Status.ExpirationTimestamp.Time, nil
		},
		Wrap: func(next http.RoundTripper) http.RoundTripper { r.next = next; return r },
	}
	change(&config)
	out, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return out, r
}

// recorder notes requests and can break them.
type recorder struct {
	next http.RoundTripper
	// lose, if set, says for which requests the reply is lost after the deed.
	lose func(*http.Request) bool
	// header is set on every request.
	header http.Header

	mu     sync.Mutex
	seen   []string // method (or WATCH, or REVISION for a list of one), path and content type of the answer
	early  []string // paths of lists that came before the proof by the list before was too old to count
	listed map[string]time.Time
}

// proofAges are the paths of what there is much of, and how long a list of each proves what a cache shows.
var proofAges = map[string]time.Duration{
	"/api/v1/pods": 30 * time.Second, "/api/v1/nodes": 30 * time.Second, "/apis/karpenter.sh/v1/nodeclaims": 10 * time.Second,
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	for k, v := range r.header {
		req.Header[k] = v
	}
	began := time.Now()
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	verb := req.Method
	if req.URL.Query().Get("watch") == "true" {
		verb = "WATCH"
	}
	if req.URL.Query().Get("limit") == "1" {
		verb = "REVISION"
	}
	r.seen = append(r.seen, verb+" "+req.URL.Path+" "+resp.Header.Get("Content-Type"))
	if age, ok := proofAges[req.URL.Path]; ok && verb == http.MethodGet {
		if last, ok := r.listed[req.URL.Path]; !ok || began.Sub(last) < age {
			r.early = append(r.early, req.URL.Path)
		}
		if r.listed == nil {
			r.listed = map[string]time.Time{}
		}
		r.listed[req.URL.Path] = began
	}
	lose := r.lose != nil && r.lose(req)
	r.mu.Unlock()
	if lose {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("read reply: connection reset by peer")
	}
	return resp, nil
}

// take returns the requests since the last time.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.seen
	r.seen, r.early = nil, nil
	return out
}

// takeEarlyLists returns the paths of lists, since the last time, that no age of a proof explains. On a machine so busy
// that ten seconds pass meanwhile, a list of claims is right.
func (r *recorder) takeEarlyLists() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.early
	r.seen, r.early = nil, nil
	return out
}

func eventually(t testing.TB, what string, done func(context.Context) (state string, ok bool)) {
	t.Helper()
	var state string
	err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (ok bool, err error) {
		state, ok = done(ctx)
		return ok, nil
	})
	if err != nil {
		t.Fatalf("wait for %s: %v; last seen: %s", what, err, state)
	}
}
