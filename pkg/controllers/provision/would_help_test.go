package provision

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
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
	if len(h) != 1 || len(help) != 3000 || len(r.WouldHelp) != 1 || r.WouldHelp[0].Count != 3000 || len(r.WouldHelp[0].Names) != decisionlog.MostNames ||
		!strings.HasPrefix(r.WouldHelp[0].Why, "add spec.tolerations team=a:NoSchedule to the pod: a new ") {
		t.Errorf("%d questions, %d pods, %+v", len(h), len(help), r.WouldHelp)
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
