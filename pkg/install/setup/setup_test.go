package setup_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/install/setup"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// world is a cluster of objects by path, which notes what is done to it.
type world struct {
	objects map[string]*unstructured.Unstructured
	done    []string
	levels  []string // of priority, and schemas, that were removed; not among what is done
	fail    func(call string) error
	onWake  func(*world)
}

func (w *world) note(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	name, ofPriority := strings.CutPrefix(call, "delete /apis/flowcontrol.apiserver.k8s.io/v1/")
	switch {
	case ofPriority:
		w.levels = append(w.levels, name)
	case !strings.HasPrefix(call, "get ") && !strings.HasPrefix(call, "list "):
		w.done = append(w.done, call)
	}
	if w.fail != nil {
		return w.fail(call)
	}
	return nil
}

func (w *world) Apply(_ context.Context, path string, o *unstructured.Unstructured) error {
	if err := w.note("apply %s", path); err != nil {
		return err
	}
	o = o.DeepCopy()
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	w.objects[path] = o
	return nil
}

func (w *world) Get(_ context.Context, path string) (*unstructured.Unstructured, bool, error) {
	if err := w.note("get %s", path); err != nil {
		return nil, false, err
	}
	o, ok := w.objects[path]
	return o, ok, nil
}

func (w *world) List(_ context.Context, path string, each func(*unstructured.Unstructured) error) error {
	if err := w.note("list %s", path); err != nil {
		return err
	}
	var names []string
	for at := range w.objects {
		if strings.HasPrefix(at, path+"/") {
			names = append(names, at)
		}
	}
	slices.Sort(names)
	for _, at := range names {
		if err := each(w.objects[at]); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) Patch(_ context.Context, path string, change map[string]any) error {
	return w.note("patch %s %v", path, change)
}

func (w *world) Replace(_ context.Context, path string, _ *unstructured.Unstructured) error {
	return w.note("replace %s", path)
}

func (w *world) Delete(_ context.Context, path string) error {
	if o := w.objects[path]; o != nil {
		now := metav1.NewTime(time.Unix(0, 0))
		o.SetDeletionTimestamp(&now)
	}
	return w.note("delete %s", path)
}

func (w *world) Wake(context.Context) error {
	w.done = append(w.done, "wake lifecycle")
	if w.onWake != nil {
		w.onWake(w)
	}
	return nil
}

func (w *world) RemoveLeftovers(context.Context) error { return w.note("remove leftovers") }

func open() setup.Access {
	return setup.Access{Role: "arn:aws:iam::1:role/setup", Cluster: preflight.Cluster{Name: "demo", Region: "us-west-2", Found: true, Status: "ACTIVE", Mode: "API",
		Endpoint: "https://api", Public: true, CIDRs: []string{"10.0.0.0/8"}}}
}

func newSetup(w *world) *setup.Setup {
	return &setup.Setup{Cluster: w, Lifecycle: w, Leftovers: w, Access: open(), Poll: time.Millisecond, Patience: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }, KarpenterNamespaces: []string{"kube-system"}}
}

func object(kind, name string, finalizers ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": name, "resourceVersion": "7"}}}
	o.SetFinalizers(finalizers)
	return o
}

func TestInstallAppliesEverythingInOrder(t *testing.T) {
	w := &world{objects: map[string]*unstructured.Unstructured{}}
	n, err := newSetup(w).InstallObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := install.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, o := range all {
		path, err := setup.ObjectPath(o)
		if err != nil {
			t.Error(err)
		}
		want = append(want, "apply "+path)
	}
	if diff := cmp.Diff(want, w.done); diff != "" || n != len(all) || !slices.Contains(want, "apply "+definitions+"nodepools.karpenter.sh") ||
		!slices.Contains(want, "apply /api/v1/namespaces/joiner-system") {
		t.Errorf("%d objects (-want +got):\n%s", n, diff)
	}
}

func TestAnOldCRDIsUpgraded(t *testing.T) {
	crd := func(storage string, stored ...any) *unstructured.Unstructured {
		o := object("CustomResourceDefinition", "nodepools.karpenter.sh")
		o.Object["spec"] = map[string]any{"group": "karpenter.sh", "names": map[string]any{"plural": "nodepools"},
			"conversion": map[string]any{"strategy": "Webhook"},
			"versions":   []any{map[string]any{"name": "v1beta1", "storage": storage == "v1beta1"}, map[string]any{"name": "v1", "storage": storage == "v1"}}}
		o.Object["status"] = map[string]any{"storedVersions": stored}
		return o
	}
	w := &world{objects: map[string]*unstructured.Unstructured{
		definitions + "nodepools.karpenter.sh": crd("v1", "v1beta1", "v1"),
		"/apis/karpenter.sh/v1/nodepools/a":    object("NodePool", "a"), "/apis/karpenter.sh/v1/nodepools/b": object("NodePool", "b"),
	}}
	w.fail = func(call string) error {
		if call == "replace /apis/karpenter.sh/v1/nodepools/a" {
			return apierrors.NewConflict(schemaOf(), "a", errors.New("changed")) // which stores it in v1 as well
		}
		return nil
	}
	if _, err := newSetup(w).InstallObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(w.done, "replace /apis/karpenter.sh/v1/nodepools/a")
	want := []string{
		"replace /apis/karpenter.sh/v1/nodepools/a", "replace /apis/karpenter.sh/v1/nodepools/b",
		"patch " + definitions + "nodepools.karpenter.sh/status map[status:map[storedVersions:[v1]]]",
		"patch " + definitions + "nodepools.karpenter.sh map[spec:map[conversion:map[strategy:None webhook:<nil>]]]",
		"apply " + definitions + "nodepools.karpenter.sh",
	}
	if diff := cmp.Diff(want, w.done[at:at+5]); diff != "" {
		t.Errorf("upgrade (-want +got):\n%s", diff)
	}
	w = &world{objects: map[string]*unstructured.Unstructured{definitions + "nodepools.karpenter.sh": crd("v1beta1", "v1beta1")}}
	if _, err := newSetup(w).InstallObjects(t.Context()); err == nil || !strings.Contains(err.Error(), "upgrade Karpenter to 1.1 or newer first") {
		t.Errorf("a CRD from before v1: %v", err)
	}
	if slices.Contains(w.done, "apply "+definitions+"nodepools.karpenter.sh") {
		t.Error("the CRD was applied all the same")
	}
}

func TestWhatIsWrongWithTheClusterIsSaid(t *testing.T) {
	for want, change := range map[string]func(a *setup.Access){
		"there is no EKS cluster demo in us-west-2":            func(a *setup.Access) { a.Found = false },
		"is CREATING: wait until it is ACTIVE":                 func(a *setup.Access) { a.Status = "CREATING" },
		"authenticationMode=API_AND_CONFIG_MAP":                func(a *setup.Access) { a.Mode = "CONFIG_MAP" },
		"has the authentication mode CONFIG_MAP":               func(a *setup.Access) { a.Mode = "" },
		"endpointPublicAccess=true,endpointPrivateAccess=true": func(a *setup.Access) { a.Public = false },
	} {
		a := open()
		change(&a)
		if err := a.CheckAccess(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check: %v, want %q", err, want)
		}
		w := &world{objects: map[string]*unstructured.Unstructured{}}
		s := newSetup(w)
		s.Access = a
		if _, err := s.InstallObjects(t.Context()); err == nil || len(w.done) > 0 {
			t.Errorf("install: %v after %v, want the same refusal and nothing done", err, w.done)
		}
	}
	inside := open()
	if inside.Public, inside.Inside = false, true; inside.CheckAccess() != nil {
		t.Errorf("a private endpoint, asked from its VPC: %v", inside.CheckAccess())
	}
	for _, mode := range []string{"API", "API_AND_CONFIG_MAP"} {
		a := open()
		if a.Mode = mode; a.CheckAccess() != nil {
			t.Errorf("mode %s: %v", mode, a.CheckAccess())
		}
	}
}

func TestWhyTheClusterDoesNotAnswerIsSaid(t *testing.T) {
	for want, refusal := range map[string]error{
		"its access entry is missing":                        apierrors.NewUnauthorized("no"),
		"aws eks associate-access-policy --region us-west-2": apierrors.NewForbidden(schemaOf(), "x", errors.New("no")),
		"https://api; its public endpoint admits 10.0.0.0/8": errors.New("dial tcp: i/o timeout"),
		"ask the API server of cluster demo: Internal error": apierrors.NewInternalError(errors.New("broken")),
	} {
		w := &world{fail: func(string) error { return refusal }}
		for what, err := range map[string]error{
			"install": second(newSetup(w).InstallObjects(t.Context())), "remove": newSetup(w).RemoveFromCluster(t.Context(), false, time.Second),
		} {
			if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, refusal) || len(w.done) > 0 {
				t.Errorf("%s: %v after %v, want %q", what, err, w.done, want)
			}
		}
	}
}

func TestANewAccessEntryMayTakeAMoment(t *testing.T) {
	looks := 0
	w := &world{objects: map[string]*unstructured.Unstructured{}, fail: func(string) error {
		if looks++; looks < 4 {
			return apierrors.NewUnauthorized("not yet")
		}
		return nil
	}}
	s := newSetup(w)
	s.Patience = time.Minute
	if _, err := s.InstallObjects(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatAKarpenterThatWorksHereOwnsIsLeftAlone(t *testing.T) {
	const claim, lease = "/apis/karpenter.sh/v1/nodeclaims/", "/apis/coordination.k8s.io/v1/namespaces/karpenter/leases/karpenter-leader-election"
	for name, c := range map[string]struct {
		observe bool
		lease   map[string]any
		alone   bool // nothing is touched
	}{
		"leads":             {false, map[string]any{"holderIdentity": "karpenter-1", "renewTime": "2026-01-01T11:59:50.123456Z", "leaseDurationSeconds": int64(15)}, true},
		"led for 68 years":  {false, map[string]any{"holderIdentity": "k", "renewTime": "2026-01-01T11:58:59.000000Z", "leaseDurationSeconds": int64(2147483647)}, false},
		"will lead":         {false, map[string]any{"holderIdentity": "k", "renewTime": "2027-01-01T11:58:59.000000Z", "leaseDurationSeconds": int64(2147483647)}, false},
		"led once":          {false, map[string]any{"holderIdentity": "karpenter-1", "renewTime": "2026-01-01T11:59:40.000000Z", "leaseDurationSeconds": int64(15)}, false},
		"gave its lease up": {false, map[string]any{"holderIdentity": "", "renewTime": "2026-01-01T11:59:59.000000Z", "leaseDurationSeconds": int64(15)}, false},
		"is only observed":  {true, nil, true},
		"is not there":      {false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			made := func() (*world, *setup.Setup) {
				w := &world{objects: map[string]*unstructured.Unstructured{claim + "a": ours("a", "")}}
				crd := object("CustomResourceDefinition", "nodepools.karpenter.sh")
				crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
				w.objects[definitions+"nodepools.karpenter.sh"] = crd
				if c.lease != nil {
					w.objects[lease] = object("Lease", "karpenter-leader-election")
					w.objects[lease].Object["spec"] = c.lease
				}
				s := newSetup(w)
				s.Observe = c.observe
				return w, s
			}
			w, s := made()
			if _, err := s.InstallObjects(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := !slices.Contains(w.done, "apply "+definitions+"nodepools.karpenter.sh"); got != c.alone {
				t.Errorf("its CRD was left alone: %t, want %t", got, c.alone)
			}
			if !slices.Contains(w.done, "apply "+definitions+"nodeoverlays.karpenter.sh") {
				t.Error("a CRD that is missing was not made")
			}
			for _, drain := range []bool{false, true} {
				w, s := made()
				w.onWake = func(w *world) { delete(w.objects, claim+"a") }
				if err := s.RemoveFromCluster(t.Context(), drain, time.Minute); err != nil {
					t.Fatal(err)
				}
				if got := len(w.done) == 0; got != c.alone {
					t.Errorf("drain %t: %v was done, want nothing: %t", drain, w.done, c.alone)
				}
			}
		})
	}
}

func TestAnUnknownKindIsRefused(t *testing.T) {
	o := object("ConfigMap", "x")
	o.SetAPIVersion("v1")
	if _, err := setup.ObjectPath(o); err == nil {
		t.Error("a kind without a path was accepted")
	}
}

func second(_ int, err error) error { return err }

func schemaOf() (r schema.GroupResource) { return r }
