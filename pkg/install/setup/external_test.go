package setup_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/install/setup"
)

// appliedByOthers is a cluster into which somebody else has put everything.
func appliedByOthers(t *testing.T) *world {
	t.Helper()
	all, err := install.External()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{objects: map[string]*unstructured.Unstructured{}}
	for _, o := range all {
		path, err := setup.ObjectPath(o)
		if err != nil {
			t.Fatal(err)
		}
		w.objects[path] = o
	}
	return w
}

func newExternal(w *world) *setup.Setup {
	s := newSetup(w)
	s.External, s.Access.External = true, true
	return s
}

const rolesPath = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"

// Where somebody else installs the manifests, setup says what is missing or older, and writes nothing.
func TestManifestsOfSomebodyElseAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, s *setup.Setup)
		want   []string
	}{
		"all is there": {func(*world, *setup.Setup) {}, nil},
		"an older role and no pools": {func(w *world, _ *setup.Setup) {
			delete(w.objects, definitions+"nodepools.karpenter.sh")
			rules, _, _ := unstructured.NestedSlice(w.objects[rolesPath+"joiner-provision"].Object, "rules")
			_ = unstructured.SetNestedSlice(w.objects[rolesPath+"joiner-provision"].Object, rules[1:], "rules")
		}, []string{"CustomResourceDefinition nodepools.karpenter.sh is missing", "ClusterRole joiner-provision is older or changed, at rules"}},
		"the cluster is to sleep": {func(_ *world, s *setup.Setup) {
			s.Sleep = map[string]string{"joiner.sh/hibernation-schedule": "0 20 * * *"}
		},
			[]string{"Namespace joiner-system is older or changed, at metadata.annotations.joiner.sh/hibernation-schedule"}},
		"no webhook": {func(_ *world, s *setup.Setup) { s.Push = install.Address{URL: "https://x/secret"} },
			[]string{"ValidatingWebhookConfiguration joiner-push is missing"}},
		"another webhook": {func(w *world, s *setup.Setup) {
			s.Push = install.Address{URL: "https://x/secret"}
			w.objects[webhook], _ = install.Push(install.Address{URL: "https://x/before"})
		}, []string{"ValidatingWebhookConfiguration joiner-push is older or changed, at webhooks[0].clientConfig.url"}},
		"setup may read nothing": {func(w *world, _ *setup.Setup) {
			w.fail = func(call string) error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
			}
		}, []string{"the cluster gives setup no rights: ClusterRole joiner-setup or its binding is missing"}},
		"setup may not read roles": {func(w *world, _ *setup.Setup) {
			w.fail = func(call string) error {
				if call == "get "+rolesPath+"joiner-admin" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errors.New("no"))
				}
				return nil
			}
		}, []string{"ClusterRole joiner-admin cannot be read: ClusterRole joiner-setup is older"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := appliedByOthers(t)
			s := newExternal(w)
			c.change(w, s)
			got, err := s.CheckManifests(t.Context())
			if d := cmp.Diff(c.want, got); d != "" || err != nil || len(w.done) > 0 {
				t.Errorf("error %v, did %v (-want +got):\n%s", err, w.done, d)
			}
			if text := setup.DescribeManifests(got); (text == "complete") != (len(got) == 0) || strings.Contains(text, "secret") {
				t.Errorf("the stack says %q", text)
			}
		})
	}
	w := appliedByOthers(t)
	w.fail = func(string) error { return apierrors.NewInternalError(errors.New("etcd")) }
	if got, err := newExternal(w).CheckManifests(t.Context()); err == nil {
		t.Errorf("a cluster that does not answer lacks %v", got)
	}
}

// The answer to CloudFormation has at most 4,096 bytes.
func TestWhatIsMissingFitsIntoAnAnswer(t *testing.T) {
	text := setup.DescribeManifests(slices.Repeat([]string{strings.Repeat("x", 150)}, 60))
	if len(text) > 2000 || !strings.HasSuffix(text, "and 52 more") {
		t.Errorf("%d bytes, %s", len(text), text[max(0, len(text)-40):])
	}
}

// The deletion of the stack takes the finalizers off, and leaves what somebody else installed.
func TestRemovalLeavesTheManifestsOfSomebodyElse(t *testing.T) {
	w := appliedByOthers(t)
	w.objects[claimsPath+"mine"] = ours("mine", "n")
	w.objects[webhook], _ = install.Push(install.Address{URL: "https://x/secret"})
	if err := newExternal(w).RemoveFromCluster(t.Context(), false, time.Minute); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"patch " + claimsPath + "mine map[metadata:map[finalizers:[] resourceVersion:7]]"}, w.done); d != "" || len(w.levels) > 0 {
		t.Errorf("removed %v (-want +got):\n%s", w.levels, d)
	}
}
