package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/controltest"
)

// some are the events that begin so.
func some(events []string, begin string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !strings.HasPrefix(e, begin) })
}

func TestPodsAndClaimsTellWhatIsLaunched(t *testing.T) {
	f := running(t)
	claims := some(f.w.Events("NodeClaim"), "Launched: launched spot ")
	if len(claims) != 3 || !strings.Contains(claims[0], " for ") || !strings.Contains(claims[0], "default/") {
		t.Errorf("events on NodeClaims: %q", claims)
	}
	pods := some(f.w.Events("Pod"), "Nominated: it is to run on a new node, NodeClaim ")
	if len(pods) != 4 || !strings.Contains(pods[0], ": spot c5.") {
		t.Errorf("events on pods: %q", pods)
	}
}

func TestAPoolThatTakesNoPartTellsWhy(t *testing.T) {
	w := newWorld()
	w.ChangePool(func(p *cluster.Pool) { p.Ready, p.Message = false, "its EC2NodeClass is not ready" })
	w.Run("web", 2, pattern(500, 512))
	if _, err := invoke(t, w, 0); err != nil {
		t.Fatal(err)
	}
	got := w.Events("NodePool")
	if len(got) != 1 || !strings.HasPrefix(got[0], "NotUsed: nothing is launched from it for pods that wait: ") || !strings.Contains(got[0], "its EC2NodeClass is not ready") {
		t.Errorf("events on the NodePool: %q", got)
	}
}

func TestANodeTellsWhatProtectsIt(t *testing.T) {
	f := half(t)
	f.w.Protect("web", 3)
	if err := f.disrupt(f.w.Ports(controltest.Fault{})).Run(context.Background(), f.w.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got := some(f.w.Events("Node"), "DisruptionBlocked: it is not disrupted: PodDisruptionBudget ")
	if len(got) == 0 || !strings.Contains(got[0], "does not let pod default/web-") {
		t.Errorf("events on nodes: %q", f.w.Events("Node"))
	}
}
