package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

func TestPodsAndClaimsTellWhatIsLaunched(t *testing.T) {
	f := controllertest.RunningPods(t)
	claims := controllertest.EventsWith(f.World.Events("NodeClaim"), "Launched: launched spot ")
	if len(claims) != 3 || !strings.Contains(claims[0], " for ") || !strings.Contains(claims[0], "default/") {
		t.Errorf("events on NodeClaims: %q", claims)
	}
	pods := controllertest.EventsWith(f.World.Events("Pod"), "Nominated: it is to run on a new node, NodeClaim ")
	if len(pods) != 4 || !strings.Contains(pods[0], ": spot c5.") {
		t.Errorf("events on pods: %q", pods)
	}
}

func TestAPoolThatTakesNoPartTellsWhy(t *testing.T) {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) { p.Ready, p.Message = false, "its EC2NodeClass is not ready" })
	w.RunApp("web", 2, controllertest.PodOf(500, 512))
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	got := w.Events("NodePool")
	if len(got) != 1 || !strings.HasPrefix(got[0], "NotUsed: nothing is launched from it for pods that wait: ") || !strings.Contains(got[0], "its EC2NodeClass is not ready") {
		t.Errorf("events on the NodePool: %q", got)
	}
}

func TestANodeTellsWhatProtectsIt(t *testing.T) {
	f := controllertest.HalfEmpty(t)
	f.World.ProtectApp("web", 3)
	if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(context.Background(), f.World.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Node", "NodeClaim"} {
		got := controllertest.EventsWith(f.World.Events(kind), "DisruptionBlocked: it is not disrupted: PodDisruptionBudget ")
		if len(got) == 0 || !strings.Contains(got[0], "does not let pod default/web-") {
			t.Errorf("events on %s: %q", kind, f.World.Events(kind))
		}
	}
}

// A pod whose do-not-disrupt is neither true nor a positive duration is told that it protects nothing.
func TestAPodTellsThatItsProtectionIsNone(t *testing.T) {
	for value, told := range map[string]int{"": 0, "true": 0, "30m": 0, "yes": 1, "false": 1, "-30m": 1} {
		f := &controllertest.Functions{World: controllertest.NewWorld()}
		pod := controllertest.PodOf(1500, 3000)
		pod.DoNotDisrupt = value
		f.World.RunApp("web", 1, pod)
		f.ComeToRest(t)
		if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		got := controllertest.EventsWith(f.World.Events("Pod"), "InvalidDoNotDisruptAnnotation: karpenter.sh/do-not-disrupt=\""+value+"\" protects nothing")
		if len(got) != told {
			t.Errorf("%q: told %q, want %d", value, got, told)
		}
	}
}

// A node whose do-not-disrupt or do-not-repair is not true is told that it says nothing: a duration is for pods.
func TestANodeTellsThatItsAnnotationSaysNothing(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"karpenter.sh/do-not-disrupt", "true", ""},
		{"karpenter.sh/do-not-disrupt", "1h", `InvalidDoNotDisruptAnnotation: karpenter.sh/do-not-disrupt="1h" protects nothing: on a node it is true, or not there`},
		{"karpenter.sh/do-not-repair", "True", `InvalidDoNotRepairAnnotation: karpenter.sh/do-not-repair="True" spares nothing: on a node it is true, or not there`},
	} {
		f := controllertest.HalfEmpty(t)
		f.World.AnnotateNodes(c.key, c.value)
		if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		told := controllertest.EventsWith(f.World.Events("Node"), "Invalid")
		if c.want == "" && len(told) > 0 || c.want != "" && (len(told) == 0 || told[0] != c.want) {
			t.Errorf("%s=%s: told %q, want %q", c.key, c.value, told, c.want)
		}
	}
}

// A pool whose budgets are closed says for what, and one whose are open says nothing.
func TestAPoolTellsThatItsBudgetsAreClosed(t *testing.T) {
	for _, c := range []struct {
		budget cluster.NodeBudget
		want   string
	}{
		{cluster.NodeBudget{Every: true, Nodes: "100%"}, ""},
		{cluster.NodeBudget{Every: true, Nodes: "0"}, "DisruptionBlocked: its budgets let no node go now for Drifted, Empty, Underutilized"},
		{cluster.NodeBudget{Reasons: []string{"Drifted"}, Nodes: "0%"}, "DisruptionBlocked: its budgets let no node go now for Drifted"},
	} {
		f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
		f.World.ChangePool(func(p *cluster.Pool) { p.Disruption.Budgets = []cluster.NodeBudget{c.budget} })
		if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(controllertest.EventsWith(f.World.Events("NodePool"), "DisruptionBlocked"), "; "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.budget, got, c.want)
		}
	}
}
