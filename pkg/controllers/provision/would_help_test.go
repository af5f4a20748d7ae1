package provision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/whatif"
)

// A pod that has waited for five minutes is told what would give it a node, first of all that it is told; one that has
// not is not, and one pod of a pass is asked about.
func TestWhatWouldHelpIsToldAfterFiveMinutes(t *testing.T) {
	w := scenario.Scripted(t, "pool p\ntaint team=a:NoSchedule", "pods old n=2 cpu=500 mem=512", "pods young cpu=600 mem=512")
	s := w.Snapshot
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	s.Catalog, s.Classes = c, []instancetypes.Class{instancetypes.DefaultClass(c)}
	for i, p := range s.Pods {
		s.Pods[i].Created, s.Pods[i].UID = s.Now.Add(-5*time.Minute), p.Name
		if strings.HasPrefix(p.Name, "young") {
			s.Pods[i].Created = s.Now.Add(-299 * time.Second)
		}
	}
	told := func(h *wouldHelp) (out []string) {
		unplaced := binpack.Pods(s).Unplaced
		for _, u := range withHelp(unplaced, h.find(s, unplaced)) {
			if strings.HasPrefix(u.Why[0], "would help: add spec.tolerations team=a:NoSchedule to the pod: a new ") && len(u.Why) == 2 {
				out = append(out, u.Pod)
			}
		}
		return out
	}
	h := &wouldHelp{}
	if got := strings.Join(told(h), " "); got != "default/old-1" {
		t.Errorf("the first pass tells %q", got)
	}
	if got := strings.Join(told(h), " "); got != "default/old-1 default/old-2" {
		t.Errorf("the second pass tells %q", got)
	}
}

// Thousands of pods that wait for one reason are one question; what it finds is in the decision log once, with their number.
func TestThousandsOfPodsAreOneQuestion(t *testing.T) {
	w := scenario.Scripted(t, "pool p\ntaint team=a:NoSchedule", "pods many n=3000 cpu=500 mem=512")
	s := w.Snapshot
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	s.Catalog, s.Classes = c, []instancetypes.Class{instancetypes.DefaultClass(c)}
	for i := range s.Pods {
		s.Pods[i].Created, s.Pods[i].Controller = s.Now.Add(-time.Hour), "ReplicaSet/many"
	}
	h := wouldHelp{}
	help := h.find(s, binpack.Pods(s).Unplaced)
	var r decisionlog.Record
	r.AddHelp(help)
	if len(h.found) != 1 || len(help) != 3000 || len(r.WouldHelp) != 1 || r.WouldHelp[0].Count != 3000 || len(r.WouldHelp[0].Names) != decisionlog.MostNames ||
		!strings.HasPrefix(r.WouldHelp[0].Why, "add spec.tolerations team=a:NoSchedule to the pod: a new ") {
		t.Errorf("%d questions, %d pods, %+v", len(h.found), len(help), r.WouldHelp)
	}
}

// Of namespaces each has a turn: one with many pods that each wait for another reason, whose names come first, leaves
// the questions of others to them, and their answers.
func TestNamespacesTakeTurnsToBeAskedAbout(t *testing.T) {
	w := scenario.Scripted(t, "pool p\ntaint team=a:NoSchedule", "pods aaa n=20 cpu=500 mem=512", "pods shop n=2 cpu=500 mem=512",
		"pods blog cpu=500 mem=512")
	s := w.Snapshot
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	s.Catalog, s.Classes = c, []instancetypes.Class{instancetypes.DefaultClass(c)}
	unplaced := make([]plan.Unplaced, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Namespace, _, _ = strings.Cut(p.Name, "-")
		p.Created, p.UID = s.Now.Add(-time.Hour), p.Name
		unplaced[i] = plan.Unplaced{Pod: p.Key(), Why: []string{"none"}}
	}
	slices.SortFunc(unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	h, help := &wouldHelp{}, map[string]string(nil)
	for range 5 {
		help = h.find(s, unplaced)
	}
	told := func() (n int) {
		for pod := range help {
			if !strings.HasPrefix(pod, "aaa/") {
				n++
			}
		}
		return n
	}
	if told() != 3 {
		t.Errorf("after five passes %d of 3 pods of others are told what would help", told())
	}
	for i := range mostWouldHelp {
		h.remember(fmt.Sprint("another question ", i), "aaa", helpFound{at: s.Now})
	}
	if help = h.find(s, unplaced); told() != 3 || len(h.found) > mostWouldHelp {
		t.Errorf("while one namespace asks about hundreds, %d of 3 pods of others remember; %d answers", told(), len(h.found))
	}
}

// A pass has less time than the command line, which asks many times as much about the same pod.
func TestWhatWouldHelpIsLittleWork(t *testing.T) {
	script := []string{"pods lost cpu=500 mem=512\nselect team=blue"}
	for _, pool := range strings.Split("abcdefghijklmnopqrst", "") {
		script = append(script, "pool "+pool+"\ntaint team="+pool+":NoSchedule\nrequire kubernetes.io/arch In arm64")
	}
	w := scenario.Scripted(t, script...)
	w.Snapshot.Pods[0].Created = w.Snapshot.Now.Add(-time.Hour)
	key := w.Snapshot.Pods[0].Key()
	at := whatif.ForPod(w.Snapshot, w.Market, key, whatif.Limits{}).Work
	if got := askAbout(w.Snapshot, key).work; at < 11_000 || got == 0 || got > 10_000 {
		t.Errorf("a pass does %d, the command line %d", got, at)
	}
}
