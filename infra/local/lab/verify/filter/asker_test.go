package filter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/infra/local/controlplane/filter"
	"joiner.sh/pkg/model/plan"
)

// kube-scheduler of this minor version and of another judge alike with their default gates, but for two things. 1.36
// keeps no pod off a node for a CSI driver that the node lacks, and 1.37 does. Of a pod whose resize is infeasible, 1.36
// counts what it asks for as a whole, and 1.37 what it has.
func TestMinors(t *testing.T) {
	if *other == "" {
		t.Skip("-other names no minor version")
	}
	newer, older, differ := newAsker(t, client.Minor(), ""), newAsker(t, *other, ""), map[string]int{}
	for i := range *draws {
		d := newDraw(t, *first+uint64(i))
		was := older.ask(d.q)
		for k, is := range newer.ask(d.q) {
			if is.Plugin != was[k].Plugin {
				differ[fmt.Sprintf("%s %q, %s %q", client.Minor(), is.Plugin, *other, was[k].Plugin)]++
			}
		}
	}
	t.Logf("of %d clusters these verdicts differ: %v", *draws, differ)
	for pair := range differ {
		if !strings.HasPrefix(pair, `1.37 "NodeVolumeLimits", `) && !strings.HasSuffix(pair, `, 1.36 "NodeResourcesFit"`) {
			t.Errorf("%s: a difference that no page tells", pair)
		}
	}
	if len(differ) == 0 {
		t.Error("nothing differs: do both run with the gates of their defaults?")
	}
}

// asker is the program, with its input and output.
type asker struct {
	t   *testing.T
	in  *json.Encoder
	out *json.Decoder
}

// newAsker runs the program of the minor version of Kubernetes that tests are about, or of another.
func newAsker(t *testing.T, minor, gates string) asker {
	t.Helper()
	cmd := exec.Command(client.ProgramForTest(t, "joiner-filter", minor), "-gates", gates)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return asker{t, json.NewEncoder(in), json.NewDecoder(out)}
}

func (a asker) ask(q filter.Question) (out []filter.Verdict) {
	a.t.Helper()
	if err := a.in.Encode(q); err != nil {
		a.t.Fatal(err)
	}
	if err := a.out.Decode(&out); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// settle asks about pods that have a node, in an order of arrival that suits them if there is one: those whom others
// keep away come last, or first where that does not help. It returns the question in that order.
func (a asker) settle(q filter.Question) (filter.Question, []filter.Verdict) {
	for range 2 * len(q.Pods) {
		verdicts, last := a.ask(q), map[string]bool{}
		for _, v := range verdicts {
			if v.Plugin == "PodTopologySpread" || v.Plugin == "InterPodAffinity" {
				last[v.Pod] = true
			}
		}
		var first, then []*corev1.Pod
		for _, p := range q.Pods {
			if last[p.Namespace+"/"+p.Name] {
				then = append(then, p)
			} else {
				first = append(first, p)
			}
		}
		again := slices.Concat(first, then)
		if len(last) == 0 {
			return q, verdicts
		} else if slices.Equal(again, q.Pods) {
			again = slices.Concat(then, first)
		}
		q.Pods = again
	}
	return q, a.ask(q)
}

// disagreements are what the scheduler says against the plan of the draw.
func (a asker) disagreements(d *draw, p plan.Plan) (out []string) {
	taken, verdicts := a.settle(d.rules.taint(d.seated(p)))
	for _, v := range verdicts {
		if v.Plugin != "" {
			out = append(out, fmt.Sprintf("%s refuses %s on %s: %s", v.Plugin, v.Pod, v.Node, v.Why))
		}
	}
	for _, q := range d.unseated(p, taken) {
		for _, v := range a.ask(d.rules.taint(q)) {
			if v.Plugin == "" && strings.HasPrefix(v.Node, extra) {
				out = append(out, fmt.Sprintf("%s has no place, and %s takes it", v.Pod, v.Node))
			}
		}
	}
	return out
}
