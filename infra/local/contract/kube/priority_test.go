package kube_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/install"
)

// answers notes by which level the API server served each request, and with which code.
type answers struct {
	next http.RoundTripper

	mu     sync.Mutex
	levels map[types.UID]int
	codes  map[int]int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.levels[types.UID(resp.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID))]++
	a.codes[resp.StatusCode]++
	return resp, nil
}

// member is a client that is in a group and in no other but system:authenticated, as a function is.
func (c env) member(t *testing.T, group string) (*kubernetes.Clientset, *answers) {
	t.Helper()
	a := &answers{levels: map[types.UID]int{}, codes: map[int]int{}}
	config := rest.CopyConfig(c.plane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "member of " + group, Groups: []string{group, "system:authenticated"}}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { a.next = next; return a })
	out, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return out, a
}

func (c env) levelNamed(t *testing.T, name string) types.UID {
	t.Helper()
	l, err := c.FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l.UID
}

// TestEveryGroupIsServedByItsLevel: lists of the functions that list everything by one, all else by the other.
func TestEveryGroupIsServedByItsLevel(t *testing.T) {
	c := newEnv(t)
	urgent, lists := c.levelNamed(t, "joiner-urgent"), c.levelNamed(t, "joiner-lists")
	for group, listed := range map[string]types.UID{
		install.GroupProvision: lists, install.GroupLifecycle: lists, install.GroupDisrupt: lists, install.GroupRefresh: lists,
		install.GroupSpotInterruption: urgent, install.GroupReservationInterruption: urgent, install.GroupRebalance: urgent,
		install.GroupScheduledChange: urgent, install.GroupStateChange: urgent,
	} {
		for what, ask := range map[string]func(*kubernetes.Clientset) error{
			"list": func(k *kubernetes.Clientset) error {
				_, err := k.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
				return err
			},
			"get": func(k *kubernetes.Clientset) error {
				_, err := k.CoreV1().Nodes().Get(t.Context(), "none", metav1.GetOptions{})
				return err
			},
		} {
			want := urgent
			if what == "list" {
				want = listed
			}
			k, seen := c.member(t, group)
			if err := ask(k); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				t.Errorf("%s of %s: %v", what, group, err)
			}
			if seen.levels[want] != 1 {
				t.Errorf("%s of %s was served by %v, want %s", what, group, seen.levels, want)
			}
		}
	}
	k, seen := c.member(t, "joiner-somebody")
	_, _ = k.CoreV1().Nodes().Get(t.Context(), "none", metav1.GetOptions{})
	if seen.levels[urgent]+seen.levels[lists] > 0 {
		t.Error("who only calls himself joiner-something is served by our levels")
	}
}

// TestOthersThatFloodTheServerKeepNoNoticeWaiting: the level of everybody else is full, and turns requests away; not one
// of a notice, which it would without the FlowSchema.
func TestOthersThatFloodTheServerKeepNoNoticeWaiting(t *testing.T) {
	c := newEnv(t)
	c.narrowGlobalDefault(t)
	_, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "scripts"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.RbacV1().ClusterRoleBindings().Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
	flood, turnedAway := c.member(t, "scripts")
	ctx, stop := context.WithCancel(t.Context())
	var g sync.WaitGroup
	for range 40 {
		g.Go(func() {
			for ctx.Err() == nil {
				_ = flood.CoreV1().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").MaxRetries(0).Do(ctx).Error()
			}
		})
	}
	t.Cleanup(g.Wait)
	t.Cleanup(stop)
	eventually(t, "others to be turned away", func(context.Context) (string, bool) {
		turnedAway.mu.Lock()
		defer turnedAway.mu.Unlock()
		return "", turnedAway.codes[http.StatusTooManyRequests] > 100
	})
	notice, served := c.member(t, install.GroupSpotInterruption)
	for range 200 {
		_ = notice.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/none").MaxRetries(0).Do(ctx).Error()
	}
	if n := served.codes[http.StatusTooManyRequests]; n > 0 {
		t.Errorf("%d of 200 requests of a notice were turned away", n)
	}
	stranger, refused := c.member(t, "strangers")
	eventually(t, "the same requests of others to be turned away", func(ctx context.Context) (string, bool) {
		_ = stranger.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/none").MaxRetries(0).Do(ctx).Error()
		return "", refused.codes[http.StatusTooManyRequests] > 0
	})
}

// narrowGlobalDefault leaves the level of everybody else one seat, and no queue, until the test ends.
func (c env) narrowGlobalDefault(t *testing.T) {
	t.Helper()
	levels := c.FlowcontrolV1().PriorityLevelConfigurations()
	change := func(ctx context.Context, to func(*flowcontrolv1.PriorityLevelConfiguration)) error {
		l, err := levels.Get(ctx, "global-default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		to(l)
		_, err = levels.Update(ctx, l, metav1.UpdateOptions{})
		return err
	}
	var before flowcontrolv1.PriorityLevelConfiguration
	one, none := int32(1), int32(0)
	if err := change(t.Context(), func(l *flowcontrolv1.PriorityLevelConfiguration) {
		before = *l.DeepCopy()
		if l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[flowcontrolv1.AutoUpdateAnnotationKey] = "false" // the server would put it right again
		l.Spec.Limited.NominalConcurrencyShares, l.Spec.Limited.BorrowingLimitPercent, l.Spec.Limited.LendablePercent = &one, &none, &none
		l.Spec.Limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := change(ctx, func(l *flowcontrolv1.PriorityLevelConfiguration) {
			l.Spec, l.Annotations = before.Spec, before.Annotations
		}); err != nil {
			t.Error(err)
		}
	})
}
