package controllers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// measureUsage measures what passes take anew, on a machine that does nothing else: processor time is in it.
var measureUsage = flag.Bool("measure-usage", false, "measure what passes take and write it to pkg/cli/bill/usage.json")

const usageFile = "../cli/bill/usage.json"

// passUsage is what one pass of a function takes.
type passUsage struct {
	Function   string  `json:"function"`
	Nodes      int     `json:"nodes"`
	CPUSeconds float64 `json:"cpuSeconds"` // of a whole processor
	LogBytes   int     `json:"logBytes"`   // metrics included
	Series     int     `json:"series"`     // of metrics, that the function has written until then
}

// turnoverUsage is what a node takes from its launch until it is gone, beside what passes at rest take.
type turnoverUsage struct {
	LogBytes int            `json:"logBytes"`
	Calls    map[string]int `json:"calls"` // of EC2, for each ten nodes
	Wakes    float64        `json:"wakes"` // of other functions
}

// usage is what was measured.
type usage struct {
	How      string        `json:"how"`
	Passes   []passUsage   `json:"passes"`
	Turnover turnoverUsage `json:"turnover"`
}

// meter is a log, and what metrics become of it.
type meter struct {
	bytes.Buffer
	series map[string]bool
}

func (m *meter) Put(records ...metrics.Record) {
	for _, r := range records {
		lines, err := metrics.EMFLines(controllertest.Noon(), "demo", r)
		if err != nil {
			panic(err)
		}
		for _, l := range lines {
			m.Write(append(l, '\n'))
		}
		for _, v := range r.Values {
			m.series[fmt.Sprint(v.Name, r.By)] = true
		}
	}
}

// to has an invocation write to the meter as the stack's functions do.
func (m *meter) to(d *controllers.Deps) {
	d.Log, d.Metrics = slog.New(slog.NewJSONHandler(m, nil)), m
}

// processorSeconds is what this process has taken.
func processorSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// measured runs one pass of a function and returns what it took.
func measured(t *testing.T, f *controllertest.Functions, m *meter, function string) (passUsage, *fake.Ports) {
	t.Helper()
	p := f.World.Ports(fake.Fault{})
	before, written, err := processorSeconds(), m.Len(), error(nil)
	switch function {
	case "provision":
		c := f.Provision(p)
		m.to(&c.Deps)
		err = c.Run(context.Background(), f.Once())
	case "lifecycle":
		c := f.Lifecycle(p)
		m.to(&c.Deps)
		err = c.Run(context.Background(), f.Once())
	case "disrupt":
		c := f.Disrupt(p)
		m.to(&c.Deps)
		err = c.Run(context.Background(), f.Once())
	}
	if err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	return passUsage{Function: function, CPUSeconds: processorSeconds() - before, LogBytes: m.Len() - written, Series: len(m.series)}, p
}

// inService is a cluster of so many nodes at rest. Disruption may look at all of them, and finds nothing.
func inService(t *testing.T, nodes int) *controllertest.Functions {
	t.Helper()
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.Quota = 2 * nodes
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}
	})
	f.World.RunApp("web", nodes, controllertest.PodOf(5000, 8000)) // one on a node
	f.World.RunApp("side", 2*nodes, controllertest.PodOf(400, 500))
	for range 20 + nodes/25 {
		f.Rest(t, 1)
		if len(f.World.ListProblems()) == 0 {
			break
		}
	}
	controllertest.NoProblems(t, f.World)
	if got := len(f.World.Instances()); got < nodes || got > nodes*5/4 {
		t.Fatalf("%d nodes, want about %d", got, nodes)
	}
	return f
}

// measureAll measures passes at rest of clusters of these sizes, and the life of nodes.
func measureAll(t *testing.T, sizes ...int) usage {
	t.Helper()
	u := usage{How: "`go test ./pkg/controllers -run TestWhatPassesTake -measure-usage`, on a cluster in memory, without " +
		"waits; the third of three passes"}
	for _, size := range sizes {
		f := inService(t, size)
		for _, function := range []string{"provision", "lifecycle", "disrupt"} {
			m := &meter{series: map[string]bool{}}
			var last passUsage
			for range 3 {
				last, _ = measured(t, f, m, function)
				f.World.Advance(time.Minute)
			}
			last.Nodes = size
			last.CPUSeconds = float64(int(last.CPUSeconds*1e4)) / 1e4
			u.Passes = append(u.Passes, last)
			t.Logf("%+v", last)
		}
	}
	u.Turnover = measureTurnover(t)
	return u
}

// measureTurnover lets ten nodes come and go.
func measureTurnover(t *testing.T) turnoverUsage {
	t.Helper()
	const nodes = 10
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.Quota = 100
	m := &meter{series: map[string]bool{}}
	calls := map[string]int{}
	play := func() {
		for range 12 {
			for _, function := range []string{"provision", "lifecycle", "disrupt"} {
				_, p := measured(t, f, m, function)
				for _, c := range p.Calls() {
					if name := strings.Fields(c)[0]; slices.Contains([]string{"launch", "terminate", "tag"}, name) {
						calls[name]++
					}
				}
			}
			f.World.Advance(20 * time.Second)
		}
	}
	f.World.RunApp("web", nodes, controllertest.InZone("us-west-2a", controllertest.PodOf(7000, 8000)))
	play()
	f.World.StopApp("web")
	f.World.SkipTime(10 * time.Minute)
	play()
	started := f.World.CountStarted()
	return turnoverUsage{LogBytes: m.Len() / started, Calls: calls, Wakes: float64(f.World.CountWakeups("lifecycle")+f.World.CountWakeups("provision")+f.World.CountWakeups("refresh")) / float64(started)}
}

// What passes write does not grow with the cluster. What the table of costs counts with is measured by `make scale`,
// which takes long; passes in memory tell when that has to be done again.
func TestWhatPassesTake(t *testing.T) {
	const most = 40 << 10 // bytes of log that a pass at rest writes, of whatever size the cluster is
	if *measureUsage {
		u := measureAll(t, 3, 50, 200)
		text, err := json.MarshalIndent(u, "", "  ")
		if err == nil {
			err = os.WriteFile(usageFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(usageFile)
	var kept usage
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := measureAll(t, 3, 50)
	for i, p := range now.Passes {
		k := kept.Passes[i]
		if p.Function != k.Function || p.Nodes != k.Nodes || p.Series != k.Series || p.LogBytes > k.LogBytes*5/4+200 || p.LogBytes < k.LogBytes*3/4-200 {
			t.Errorf("a pass takes %+v, when the table of costs was measured they took %+v: run make scale and -measure-usage", p, k)
		}
	}
	for _, p := range kept.Passes {
		if p.LogBytes > most {
			t.Errorf("%s writes %d bytes in one pass over %d nodes at rest, which is too much", p.Function, p.LogBytes, p.Nodes)
		}
	}
	if n, k := now.Turnover.LogBytes, kept.Turnover.LogBytes; n > k*5/4 || n < k*3/4 || !maps.Equal(now.Turnover.Calls, kept.Turnover.Calls) {
		t.Errorf("the life of a node takes %+v, and the table of costs counts with %+v: measure anew with -measure-usage", now.Turnover, kept.Turnover)
	}
}
