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
)

func TestKeepTakesOurFinalizersOffAndNoOthers(t *testing.T) {
	w := &world{objects: map[string]*unstructured.Unstructured{
		"/apis/karpenter.sh/v1/nodeclaims/a":                ours("a", ""),
		"/api/v1/nodes/n":                                   object("Node", "n", "others/finalizer", "karpenter.sh/termination"),
		"/api/v1/nodes/foreign":                             object("Node", "foreign", "others/finalizer"),
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default": object("EC2NodeClass", "default", "karpenter.k8s.aws/termination"),
	}}
	conflicts := 0
	w.fail = func(call string) error {
		if strings.HasPrefix(call, "patch /api/v1/nodes/n ") {
			if conflicts++; conflicts == 1 {
				return apierrors.NewConflict(schemaOf(), "n", errors.New("changed"))
			}
		}
		return nil
	}
	if err := newSetup(w).RemoveFromCluster(t.Context(), false, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"patch /apis/karpenter.sh/v1/nodeclaims/a map[metadata:map[finalizers:[] resourceVersion:7]]",
		"patch /api/v1/nodes/n map[metadata:map[finalizers:[others/finalizer] resourceVersion:7]]",
		"patch /api/v1/nodes/n map[metadata:map[finalizers:[others/finalizer] resourceVersion:7]]",
		"patch /apis/karpenter.k8s.aws/v1/ec2nodeclasses/default map[metadata:map[finalizers:[] resourceVersion:7]]",
	}
	if diff := cmp.Diff(want, w.done); diff != "" {
		t.Errorf("keep (-want +got):\n%s", diff)
	}
}

func TestDrainDeletesClaimsAndWaitsForLifecycle(t *testing.T) {
	const claim = "/apis/karpenter.sh/v1/nodeclaims/"
	w := &world{objects: map[string]*unstructured.Unstructured{
		claim + "a": ours("a", ""), claim + "b": ours("b", ""),
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default": object("EC2NodeClass", "default", "karpenter.k8s.aws/termination"),
	}}
	wakes := 0
	w.onWake = func(w *world) {
		switch wakes++; wakes {
		case 1: // a claim that provision made at the last moment
			delete(w.objects, claim+"a")
			w.objects[claim+"late"] = ours("late", "")
		case 2:
			delete(w.objects, claim+"b")
			delete(w.objects, claim+"late")
		}
	}
	if err := newSetup(w).RemoveFromCluster(t.Context(), true, time.Minute); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete " + claim + "a", "delete " + claim + "b", "wake lifecycle", "delete " + claim + "late", "wake lifecycle",
		"patch /apis/karpenter.k8s.aws/v1/ec2nodeclasses/default map[metadata:map[finalizers:[] resourceVersion:7]]",
		"remove leftovers",
	}
	if diff := cmp.Diff(want, w.done); diff != "" {
		t.Errorf("drain (-want +got):\n%s", diff)
	}
}

func TestADrainThatDoesNotEndSaysWhatIsLeft(t *testing.T) {
	const claim = "/apis/karpenter.sh/v1/nodeclaims/"
	stuck := ours("stuck", "")
	stuck.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Drained", "status": "Unknown", "reason": "Draining", "message": "pdb web"}}}
	w := &world{objects: map[string]*unstructured.Unstructured{claim + "stuck": stuck}}
	err := newSetup(w).RemoveFromCluster(t.Context(), true, 10*time.Millisecond)
	want := "1 NodeClaims are not drained within 10ms: stuck (Drained=Unknown Draining pdb web). Look at their events"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if slices.ContainsFunc(w.done, func(call string) bool { return strings.HasPrefix(call, "patch") }) {
		t.Error("finalizers were taken off although the drain did not end")
	}
}

func TestAClusterThatIsGoneNeedsNothing(t *testing.T) {
	w := &world{}
	s := newSetup(w)
	s.Access.Found = false
	if err := s.RemoveFromCluster(t.Context(), false, time.Second); err != nil || len(w.done) > 0 {
		t.Errorf("%v after %v", err, w.done)
	}
	for _, status := range []string{"DELETING", "FAILED", "CREATING"} {
		s := newSetup(w)
		s.Access.Status = status
		if err := s.RemoveFromCluster(t.Context(), false, time.Second); err != nil || len(w.done) > 0 {
			t.Errorf("%s: %v after %v", status, err, w.done)
		}
	}
}

// TestAClusterOutOfReachSaysHowToDeleteTheStack all the same.
func TestAClusterOutOfReachSaysHowToDeleteTheStack(t *testing.T) {
	w := &world{fail: func(string) error { return errors.New("no route to host") }}
	s := newSetup(w)
	s.Patience = time.Millisecond
	err := s.RemoveFromCluster(t.Context(), false, time.Second)
	if err == nil || !strings.Contains(err.Error(), "no route to host") || !strings.Contains(err.Error(), "--retain-resources") {
		t.Errorf("error %v", err)
	}
}
