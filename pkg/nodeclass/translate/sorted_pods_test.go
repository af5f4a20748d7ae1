package translate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAnUpdateIsAsGoodAsSortingAnew: pods come, change, go and come again under another UID, some between two updates.
func TestAnUpdateIsAsGoodAsSortingAnew(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var shapes PodShapes
	all, sorted := map[string]*ListedPod{}, SortedPods{}
	for round := range 300 {
		changed := map[string]bool{}
		for range rng.IntN(20) {
			uid := fmt.Sprintf("uid-%d", rng.IntN(200))
			changed[uid] = true
			if rng.IntN(3) == 0 {
				delete(all, uid)
				continue
			}
			all[uid] = shapes.ListPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", rng.IntN(3)),
				Name: fmt.Sprint("pod-", rng.IntN(50)), UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: fmt.Sprint(round)}})
		}
		before := slices.Clone(sorted.list)
		next := sorted.Update(changed, all)
		if !slices.Equal(sorted.list, before) {
			t.Fatalf("round %d changed what was sorted before", round)
		}
		if want := SortPods(maps.Values(all)); !slices.Equal(next.list, want.list) {
			t.Fatalf("round %d: %d pods, want %d, or in another order", round, len(next.list), len(want.list))
		}
		sorted = next
	}
	if len(sorted.list) < 50 {
		t.Errorf("only %d pods in the end", len(sorted.list))
	}
}
