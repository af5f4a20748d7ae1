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
)

// TestPriorityGoesWithTheStack, once nothing needs it: a drain that is not over does.
func TestPriorityGoesWithTheStack(t *testing.T) {
	want := []string{"flowschemas/joiner-urgent", "flowschemas/joiner-lists", "prioritylevelconfigurations/joiner-lists", "prioritylevelconfigurations/joiner-urgent"}
	for name, c := range map[string]struct {
		observe, drain, stuck bool
		want                  []string
	}{
		"keep": {want: want}, "observe": {observe: true, want: want}, "drain": {drain: true, want: want}, "drain that takes too long": {drain: true, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: map[string]*unstructured.Unstructured{}}
			if c.stuck {
				w.objects["/apis/karpenter.sh/v1/nodeclaims/a"] = ours("a", "")
			}
			s := newSetup(w)
			s.Observe = c.observe
			err := s.RemoveFromCluster(t.Context(), c.drain, 5*time.Millisecond)
			if diff := cmp.Diff(c.want, w.levels); diff != "" || (err != nil) != c.stuck {
				t.Errorf("error %v, removed (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestAnOlderServerKnowsNoPriority of this version: the rest is installed all the same. Another refusal is one.
func TestAnOlderServerKnowsNoPriority(t *testing.T) {
	for why, works := range map[error]bool{apierrors.NewNotFound(schema.GroupResource{}, "flowschemas"): true, errors.New("refused"): false} {
		w := &world{objects: map[string]*unstructured.Unstructured{}, fail: func(call string) error {
			if strings.HasPrefix(call, "apply /apis/flowcontrol") {
				return why
			}
			return nil
		}}
		n, err := newSetup(w).InstallObjects(t.Context())
		if (err == nil) != works || works && (n == 0 || !slices.Contains(w.done, "apply /apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-statechange")) {
			t.Errorf("%v: %d objects, error %v", why, n, err)
		}
	}
}
