package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Thousands of budgets of a tenant that select all of its pods are told in few words, and cost others nothing.
func TestManyBudgetsOfATenant(t *testing.T) {
	var all []cluster.PodDisruptionBudget
	for i := range 5000 {
		all = append(all, cluster.PodDisruptionBudget{Namespace: "evil", Name: fmt.Sprintf("b-%04d", i), Selector: &cluster.Selector{}})
	}
	b := NewPodBudgets(all)
	if ask, _, why := b.takeEviction(cluster.Pod{Namespace: "evil", Name: "p", Phase: "Running"}); ask || len(why) > 300 || !strings.Contains(why, "is under 5000 PodDisruptionBudgets (evil/b-0000, evil/b-0001, evil/b-0002, evil/b-0003, evil/b-0004 and 4995 more)") {
		t.Errorf("%t, %d bytes: %.300s", ask, len(why), why)
	}
	began := time.Now()
	for range 20_000 {
		b.takeEviction(cluster.Pod{Namespace: "shop", Name: "p", Phase: "Running"})
	}
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("20,000 pods of others took %s", took)
	}
}
