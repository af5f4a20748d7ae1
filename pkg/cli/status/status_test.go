package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/syntax"
)

// TestScenarios plays testdata in the words of pkg/testing/scenario. "status" prints the picture, "created
// NAME=DURATION ..." says how old nodes, claims and pods are, "cordon NODE" and "unready NODE" change a node, and
// "page" prints the HTML page; "buffer NAME" has the pods whose names begin so stand for what a CapacityBuffer keeps, and
// "standby CLAIM STATE" makes a claim one of stopped capacity: stopped, warming, starting or asked.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(scenario.Words(), "created *=", "broken-pool POOL", "unready NODE", "unlabel NODE", "cordon NODE", "status", "page TITLE", "buffer NAME", "standby CLAIM STATE")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := scenario.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if known, err := w.Do(d); err != nil {
				return err.Error()
			} else if known {
				return "ok"
			}
			return do(t, w, d)
		})
	})
}

func do(t *testing.T, w *scenario.World, d *datadriven.TestData) string {
	switch d.Cmd {
	case "created":
		for _, a := range d.CmdArgs {
			age, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				t.Fatal(err)
			}
			date(w, a.Key, w.Snapshot.Now.Add(-age))
		}
		return "ok"
	case "broken-pool":
		for i := range w.Snapshot.Pools {
			if p := &w.Snapshot.Pools[i]; p.Name == d.CmdArgs[0].Key {
				p.Ready, p.Message = false, d.Input
			}
		}
		return "ok"
	case "unready", "unlabel":
		for i := range w.Snapshot.Nodes {
			if n := &w.Snapshot.Nodes[i]; n.Name == d.CmdArgs[0].Key && d.Cmd == "unready" {
				n.Ready = false
			} else if n.Name == d.CmdArgs[0].Key {
				delete(n.Labels, instancetypes.LabelCapacityType)
				delete(n.Labels, "karpenter.sh/nodepool")
				delete(n.Labels, instancetypes.LabelType)
			}
		}
		return "ok"
	case "buffer":
		keep(w, d.CmdArgs[0].Key)
		return "ok"
	case "standby":
		standBy(t, w, d.CmdArgs[0].Key, d.CmdArgs[1].Key)
		return "ok"
	case "status":
		return told(look(w))
	case "page":
		var b strings.Builder
		if err := WritePage(&b, d.CmdArgs[0].Key, look(w)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	t.Fatalf("unknown word %q", d.Cmd)
	return ""
}

// keep makes a buffer of the pods whose names begin so.
func keep(w *scenario.World, name string) {
	b := cluster.StoppedBuffer{Namespace: "default", Name: name}
	w.Snapshot.Pods = slices.DeleteFunc(w.Snapshot.Pods, func(p cluster.Pod) bool {
		kept := strings.HasPrefix(p.Name, name+"-")
		if kept {
			p.Virtual = true
			b.Pods = append(b.Pods, p)
		}
		return kept
	})
	w.Snapshot.Stopped = append(w.Snapshot.Stopped, b)
}

// standBy makes the claim one of stopped capacity.
func standBy(t *testing.T, w *scenario.World, name, state string) {
	t.Helper()
	k, known := map[string]cluster.Condition{"stopped": {Status: "True"}, "asked": {Status: "True"}, "warming": {Status: "Unknown", Reason: v1.ReasonWarming},
		"starting": {Status: "False", Reason: v1.ReasonStarting}}[state]
	i := slices.IndexFunc(w.Snapshot.Claims, func(c cluster.Claim) bool { return c.Name == name })
	if i < 0 || !known {
		t.Fatalf("claim %s cannot be %s", name, state)
	}
	c := &w.Snapshot.Claims[i]
	c.Annotations = map[string]string{v1.AnnotationStoppedCapacity: "true"}
	if state == "asked" {
		c.Annotations[v1.AnnotationStartRequested] = w.Snapshot.Now.Format(time.RFC3339)
	}
	k.Type, k.Since = v1.ConditionStopped, w.Snapshot.Now
	c.Conditions = append(c.Conditions, k)
}

// look is the picture, with the prices of the world's types as what EC2 charges.
func look(w *scenario.World) View {
	s := w.Snapshot
	s.Catalog = instancetypes.Catalog{}
	for _, t := range w.Types {
		f := instancetypes.Facts{Name: t.Name, SpotUSD: map[string]float64{}}
		for _, o := range t.Offerings {
			if o.CapacityType == instancetypes.Spot {
				f.SpotUSD[o.Zone] = o.Price
			} else {
				f.OnDemandUSD = o.Price
			}
		}
		s.Catalog.Types = append(s.Catalog.Types, f)
	}
	return ViewOf(s, disruption.Memory{}, w.Market)
}

func date(w *scenario.World, name string, at time.Time) {
	for i := range w.Snapshot.Nodes {
		if w.Snapshot.Nodes[i].Name == name {
			w.Snapshot.Nodes[i].Created = at
		}
	}
	for i := range w.Snapshot.Claims {
		if c := &w.Snapshot.Claims[i]; c.Name == name || c.NodeName == name || c.Name == "claim-"+name {
			c.Created = at
		}
	}
	for i := range w.Snapshot.Pods {
		if w.Snapshot.Pods[i].Name == name {
			w.Snapshot.Pods[i].Created = at
		}
	}
}

// told is the picture as text.
func told(v View) string {
	var b strings.Builder
	for _, p := range v.Pools {
		fmt.Fprintf(&b, "pool %q: %s %s\n", p.Name, sum(p.Sum), strings.Join(append(PoolRemarks(p), p.Problem), "; "))
		for _, n := range p.Nodes {
			fmt.Fprintf(&b, "  %s %s %s %s, %s, %s USD/h, %s, %d pods, cpu %s %s, memory %s %s, may go %t: %s\n", n.Name, n.CapacityType, n.Type, n.Zone, n.Phase,
				FormatUSD(n), FormatAge(n.Age), n.Pods, DrawBar(n.CPU, 8), FormatPercent(n.CPU), DrawBar(n.Memory, 8), FormatPercent(n.Memory), n.MayGo, n.Why)
		}
	}
	for _, line := range BufferLines(v) {
		b.WriteString(line + "\n")
	}
	for _, p := range v.Pending {
		fmt.Fprintf(&b, "waits %s for %s, lost %t, asleep %t: %s\n", p.Name, FormatAge(p.Waits), p.Lost, p.Asleep, p.Outlook)
	}
	fmt.Fprintf(&b, "together %s; %d launches for %.4f USD/h\n", sum(v.Total), v.Launches, v.AddsUSD)
	return b.String()
}

func sum(s Sum) string {
	return fmt.Sprintf("%d nodes, %d pods, %.4f USD/h, %d unpriced, cpu %s of %s, memory %s of %s GiB;", s.Nodes, s.Pods, s.HourlyUSD, s.Unpriced,
		FormatCores(s.CPU.Used), FormatCores(s.CPU.Room), GiB(s.Memory.Used), GiB(s.Memory.Room))
}

func TestWords(t *testing.T) {
	var got []string
	for _, d := range []time.Duration{0, 119 * time.Second, 2 * time.Minute, 2*time.Hour + 5*time.Minute, 9*time.Hour + 5*time.Minute, 50 * time.Hour, 240 * time.Hour} {
		got = append(got, FormatAge(d))
	}
	for _, f := range []FillLevel{{}, {1, 0}, {500, 1000}, {5, 100}, {1000, 1000}, {1500, 1000}, {700, 1000}, {400, 1000}} {
		got = append(got, DrawBar(f, 4)+" "+FormatPercent(f)+" "+FillGrade(f))
	}
	got = append(got, FormatCores(1930), FormatCores(2000), GiB(7<<30), GiB(7<<30+300<<20), FormatUSD(Node{HourlyUSD: 1}), FormatUSD(Node{HourlyUSD: 0.0968, Priced: true}))
	want := []string{"0s", "119s", "2m", "2h5m", "9h", "2d2h", "10d",
		"···· 0% none", "···· 0% none", "██·· 50% fair", "▎··· 5% poor", "████ 100% good", "████ 150% over", "██▊· 70% good", "█▋·· 40% fair",
		"1.9", "2", "7", "7.3", "?", "0.0968"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("words (-want +got):\n%s", d)
	}
}
