package migrate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/syntax"
)

// TestScenarios plays testdata in the words of pkg/testing/scenario. Nodes and claims of ours are as Karpenter leaves
// them. "karpenter", "autoscaler", "leader", "joiner", "crd", "foreign", "roles", "pinned", "annotated", "written",
// "expression" (of a class), "kubelet" (of a pool), "buffer" and "option" (of Karpenter; "unread" for what could not be read) are further facts;
// "claim-is NAME WHAT" changes a claim; "group NAME NODES" puts nodes into a node group; "to" and "back" print the
// report.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(scenario.Words(), "karpenter VERSION", "autoscaler VERSION", "leader NAME", "joiner NAME", "crd NAME VERSION...", "foreign NAME...", "roles NAME...",
		"pinned NAME...", "annotated POOL KEY...", "written KIND NAME KEY...", "expression CLASS", "kubelet POOL", "group NAME NODE...", "claim-is NAME WHAT", "buffer NAME...", "option", "unread", "to", "back")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{World: scenario.New()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if known, err := w.Do(d); err != nil {
				return err.Error()
			} else if known {
				return "ok"
			}
			return w.do(t, d)
		})
	})
}

type world struct {
	*scenario.World
	facts  Facts
	edited map[string]bool // claims that are not as Karpenter leaves them
}

func (w *world) do(t *testing.T, d *datadriven.TestData) string {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, a.Key)
	}
	switch d.Cmd {
	case "karpenter":
		w.facts.Karpenter = &Controller{Namespace: "kube-system", Name: "karpenter", Version: args[0], Replicas: 2}
	case "autoscaler":
		w.facts.Autoscaler = &Controller{Namespace: "kube-system", Name: "cluster-autoscaler", Version: args[0], Replicas: 1}
	case "leader":
		w.facts.Leader = args[0]
	case "joiner":
		w.facts.Joiner = args[0]
	case "crd":
		w.facts.CRDs = append(w.facts.CRDs, CRD{Name: args[0], Stored: args[1:], Webhook: len(args) > 2})
	case "foreign":
		w.facts.Foreign = args
	case "roles":
		w.facts.Roles = args
	case "buffer":
		w.facts.Buffers = append(w.facts.Buffers, args...)
	case "option":
		w.facts.Options.Known = true
		if w.facts.Options.Values == nil {
			w.facts.Options.Values = map[string]string{}
		}
		for line := range strings.Lines(d.Input) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			w.facts.Options.Values[name] = value
		}
	case "unread":
		w.facts.Options.Unread = append(w.facts.Options.Unread, d.Input)
	case "pinned":
		w.facts.Pinned = args
	case "annotated":
		w.facts.Annotations = append(w.facts.Annotations, Annotated{Pool: args[0], Keys: args[1:]})
	case "expression":
		w.Snapshot.Classes = append(w.Snapshot.Classes, instancetypes.Class{Name: args[0], MaxPodsExpression: "vcpus * 8"})
	case "written":
		w.facts.Written = append(w.facts.Written, Written{Kind: args[0], Name: args[1], Keys: args[2:]})
	case "kubelet":
		w.facts.Kubelets = append(w.facts.Kubelets, args[0])
	case "group":
		w.group(args[0], args[1:])
	case "claim-is":
		w.change(t, args[0], args[1])
	case "to", "back":
		return w.report(d.Cmd)
	default:
		t.Fatalf("unknown word %q", d.Cmd)
	}
	return "ok"
}

func (w *world) group(name string, nodes []string) {
	for _, node := range nodes {
		for i := range w.Snapshot.Nodes {
			if n := &w.Snapshot.Nodes[i]; n.Name == node {
				n.Labels[labelNodeGroup], n.Labels[labelCapacity] = name, "ON_DEMAND"
			}
		}
	}
}

// left makes a claim as Karpenter leaves it.
func (w *world) left(c *cluster.Claim) {
	if w.edited[c.Name] {
		return
	}
	c.Finalizer = true
	c.Labels["karpenter.k8s.aws/ec2nodeclass"] = c.Class
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations["karpenter.k8s.aws/tagged"] = "true"
	c.Annotations["karpenter.sh/nodepool-hash"], c.Annotations["karpenter.sh/nodepool-hash-version"] = "17", "v3"
	if c.ProviderID != "" {
		c.Conditions = []cluster.Condition{{Type: api.ConditionLaunched, Status: "True"}}
	}
}

func (w *world) change(t *testing.T, name, what string) {
	for i := range w.Snapshot.Claims {
		c := &w.Snapshot.Claims[i]
		if c.Name != name {
			continue
		}
		w.left(c)
		if w.edited == nil {
			w.edited = map[string]bool{}
		}
		w.edited[name] = true
		switch what {
		case "bare":
			c.Finalizer = false
		case "untagged":
			delete(c.Annotations, "karpenter.k8s.aws/tagged")
		case "deleting":
			c.Deleting = w.Snapshot.Now.Add(-time.Minute)
		case "marked":
			c.Annotations[api.AnnotationDisruptionCommand] = "{}"
		case "stopped":
			c.Annotations[api.AnnotationStoppedCapacity] = "true"
			c.Conditions = append(c.Conditions, cluster.Condition{Type: api.ConditionStopped, Status: "True"})
		case "of-another-template":
			c.Annotations["karpenter.sh/nodepool-hash"] = "16"
		default:
			t.Fatalf("a claim cannot be %q", what)
		}
		return
	}
	t.Fatalf("there is no claim %s", name)
}

func (w *world) report(way string) string {
	f := w.facts
	for i := range w.Snapshot.Pools {
		w.Snapshot.Pools[i].Hash = "17"
	}
	for i := range w.Snapshot.Claims {
		w.left(&w.Snapshot.Claims[i])
	}
	f.Snapshot = w.Snapshot
	r := ReportBack(f)
	if way == "to" {
		r = ReportTo(f, w.Market)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "from %s, %d nodes go on, ready %t\n", r.From, r.Nodes, r.IsReady())
	for _, x := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s. Mend: %s\n", x.Level, x.About, x.What, x.Mend)
	}
	for _, e := range r.Edits {
		fmt.Fprintf(&b, "edit %s %s: %s\n", e.Do, e.Name, e.Why)
	}
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "group %s of %d\n%s", g.Name, g.Nodes, g.Pool)
	}
	for _, l := range r.Settings {
		fmt.Fprintf(&b, "setting %s: %v, of %s\n", l.Name, l.Value, l.From)
	}
	for i, s := range r.Steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, s)
	}
	return b.String()
}
