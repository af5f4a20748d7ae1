package stack_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/lab/alarms"
)

// choose reports which of two values, the only ones known, a property has.
func choose(t *testing.T, value any, yes, no string) bool {
	t.Helper()
	if value != yes && value != no {
		t.Fatalf("%v is neither %s nor %s", value, yes, no)
	}
	return value == yes
}

// readAlarm is an alarm of the template as CloudWatch evaluates it.
func readAlarm(t *testing.T, p map[string]any) alarms.Alarm {
	t.Helper()
	number := func(v any) int { n, _ := v.(float64); return int(n) }
	a := alarms.Alarm{Name: text(p["AlarmName"]), Threshold: p["Threshold"].(float64), Datapoints: number(p["DatapointsToAlarm"]), Evaluated: number(p["EvaluationPeriods"]),
		MissingBreaches: choose(t, p["TreatMissingData"], "breaching", "notBreaching"), Over: choose(t, p["ComparisonOperator"], "GreaterThanThreshold", "LessThanThreshold")}
	series := func(m map[string]any) string {
		return fmt.Sprintf("%v %v%s", m["Namespace"], m["MetricName"], text(m["Dimensions"]))
	}
	if p["Metrics"] == nil {
		a.Period = number(p["Period"])
		a.Metrics = []alarms.Metric{{ID: "m0", Series: series(p), Statistic: alarms.Statistic(text(p["Statistic"]))}}
		return a
	}
	for _, one := range p["Metrics"].([]any) {
		m := one.(map[string]any)
		if e, ok := m["Expression"].(string); ok {
			a.Expression = e
			continue
		}
		stat := m["MetricStat"].(map[string]any)
		a.Period = number(stat["Period"])
		a.Metrics = append(a.Metrics, alarms.Metric{ID: text(m["Id"]), Series: series(stat["Metric"].(map[string]any)), Statistic: alarms.Statistic(text(stat["Stat"]))})
	}
	return a
}

// alarmsOf are all alarms of the stack with these settings, by name without its beginning.
func alarmsOf(t *testing.T, more map[string]any) (all map[string]alarms.Alarm, texts map[string]string) {
	t.Helper()
	context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push", "priceAlarmUSD": 12.5, "maxNodes": 500}
	maps.Copy(context, more)
	all, texts = map[string]alarms.Alarm{}, map[string]string{}
	words(t, mustSynth(t, context)).each("AWS::CloudWatch::Alarm", func(_ string, p map[string]any) {
		a := readAlarm(t, p)
		name := strings.TrimPrefix(a.Name, "joiner-demo-")
		all[name], texts[name] = a, text(p["AlarmDescription"])
	})
	return all, texts
}

const (
	played  = 120 // minutes
	begins  = 60  // when the fault does
	refresh = 5   // minutes between two ticks of refresh
)

// story is what CloudWatch is told, from the first minute on.
type story struct{ alarms.Numbers }

func ofFunction(metric, function string) string {
	return fmt.Sprintf("AWS/Lambda %s{Name=FunctionName, Value=%s}", metric, function)
}

func ofCluster(metric string) string {
	return fmt.Sprintf("Joiner %s{Name=cluster, Value=demo}", metric)
}

// put puts a number into a series at every minute of the fault that divides by every.
func (s story) put(series string, every int, value float64) {
	for minute := begins; minute < played; minute++ {
		if minute%every == 0 {
			s.Put(series, minute*60+17, value)
		}
	}
}

// stop takes away what a series has from one minute on until before another.
func (s story) stop(series string, from, until int) {
	s.Numbers[series] = slices.DeleteFunc(s.Numbers[series], func(n alarms.Number) bool { return n.At >= from*60 && n.At < until*60 })
}

// well is a stack that works: a schedule fires now and then a little earlier or later than a minute after it did before,
// notices and recommendations come now and then, and what is dropped or throttled of ticks is of no matter.
func well() story {
	s := story{alarms.Numbers{}}
	for minute := range played {
		at := minute*60 + minute*7%55
		for _, f := range []string{"Provision", "Lifecycle", "Disrupt", "Refresh"} {
			if f == "Refresh" && minute%refresh != 0 {
				continue
			}
			s.Put(ofFunction("Invocations", f), at, 1)
			s.Put(ofFunction("Errors", f), at, 0)
			s.Put(ofFunction("Throttles", f), at, float64(minute%2))
			s.Put(ofFunction("AsyncEventsDropped", f), at, float64(minute%2))
		}
		if minute%refresh == 0 { // which measures the fleet
			s.Put(ofCluster("joiner_catalog_age_seconds"), at, 2)
			s.Put(ofCluster("karpenter_cluster_state_node_count"), at, 200)
			s.Put(ofCluster("joiner_price_usd_per_hour"), at, 10)
		}
		if minute%20 == 0 {
			s.Put(ofFunction("Invocations", "SpotInterruption"), at, 1)
			s.Put(ofFunction("Errors", "SpotInterruption"), at, 1) // tried again
			s.Put(ofCluster("joiner_notice_handled_seconds"), at, 2)
			s.Put(ofCluster("karpenter_pods_provisioning_unbound_time_seconds"), at, 1800) // once, not for long
		}
	}
	return s
}

// spells are over by themselves and ring nothing.
func spells() map[string]func(story) {
	return map[string]func(story){
		"all is well":          func(story) {},
		"a pass fails":         func(s story) { s.Put(ofFunction("Errors", "Provision"), begins*60, 1) },
		"a refresh fails":      func(s story) { s.Put(ofFunction("Errors", "Refresh"), begins*60, 1) },
		"two ticks are missed": func(s story) { s.stop(ofFunction("Invocations", "Provision"), begins, begins+2) },
		"a refresh is missed":  func(s story) { s.stop(ofFunction("Invocations", "Refresh"), begins, begins+refresh+1) },
		"two passes are cut short": func(s story) {
			s.Put(ofCluster("joiner_passes_cut_short_total"), begins*60, 1)
			s.Put(ofCluster("joiner_passes_cut_short_total"), begins*60+70, 1)
		},
		"a burst waits with us": func(s story) { s.Put(ofFunction("Throttles", "StateChange"), begins*60, 40) },
	}
}

// written is a fault that no run of the deployed programs can have, why that is so, and the values that it would have.
type written struct {
	why  string
	does func(story)
}

// writtenFaults are those by the alarm that rings for them.
func writtenFaults() map[string]written {
	return map[string]written{
		"Faults": {"it counts panics of Joiner itself, and an input that causes one is mended, not kept",
			func(s story) { s.put(ofCluster("joiner_faults_total"), 1, 1) }},
		"CeilingReached": {"a run of a few nodes reaches no bound of a cluster",
			func(s story) { s.put(ofCluster("joiner_launches_held_count"), 1, 1) }},
		"TypesLeftOut": {"it needs three nodes that kube-scheduler refuses, which takes longer than a recording",
			func(s story) { s.put(ofCluster("joiner_instance_types_left_out_count"), 1, 1) }},
	}
}

// recorded are the runs with faults that `make alarms` records, by name.
func recorded(t *testing.T) map[string]alarms.Recording {
	t.Helper()
	files, err := filepath.Glob("../lab/alarms/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings, %v: make alarms records them", len(files), err)
	}
	out := map[string]alarms.Recording{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := alarms.ReadRecording(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(name), ".txt")] = r
	}
	return out
}

// warm is the minute from which on alarms are looked at: before, they miss what would have been before the run.
const warm = 30

// runAlarms are the alarms of a stack whose limits a run of a few nodes passes.
func runAlarms(t *testing.T) map[string]alarms.Alarm {
	all, _ := alarmsOf(t, map[string]any{"priceAlarmUSD": 0.05})
	return all
}

// ringing are the alarms that begin to ring after one minute and until another, each with the first such minute. One
// that rings when a run is warm has begun then.
func ringing(t *testing.T, all map[string]alarms.Alarm, n alarms.Numbers, after, until int) map[string]int {
	t.Helper()
	out := map[string]int{}
	for name, a := range all {
		before := false
		for minute := max(after, warm); minute <= until; minute++ {
			rings, err := a.Rings(n, minute*60)
			if err != nil {
				t.Fatal(err)
			}
			if rings && !before && (minute > after || minute == warm) {
				out[name] = minute
				break
			}
			before = rings
		}
	}
	return out
}

// Every alarm rings for the fault that it is for, within half an hour, and for nothing else: in runs of the deployed
// programs that met these faults, one after the other. Before the first fault and until the next one nothing else rings.
func TestEveryAlarmRingsForItsFault(t *testing.T) {
	all := runAlarms(t)
	fired := map[string]bool{}
	for run, r := range recorded(t) {
		if first := r.Faults[0].From; first >= warm {
			if rang := ringing(t, all, r.Numbers, 0, first); len(rang) > 0 {
				t.Errorf("%s: before the first fault %v ring", run, rang)
			}
		}
		for i, f := range r.Faults {
			next := r.Minutes
			if i+1 < len(r.Faults) {
				next = r.Faults[i+1].From
			}
			rang := ringing(t, all, r.Numbers, f.From, next)
			want := slices.Sorted(slices.Values(f.Alarms))
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(rang))); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", run, f.Name, diff)
			}
			for alarm, at := range rang {
				fired[alarm] = true
				if late := at - f.From; late > 30 && f.From >= warm {
					t.Errorf("%s: %s: %s rings %d minutes after the fault began", run, f.Name, alarm, late)
				}
			}
		}
	}
	usual, _ := alarmsOf(t, nil)
	for alarm, w := range writtenFaults() {
		if fired[alarm] {
			t.Errorf("%s is recorded, although %s: what is written down about it can go", alarm, w.why)
		}
		s := well()
		w.does(s)
		rang := ringing(t, usual, s.Numbers, begins-5, played)
		if diff := cmp.Diff([]string{alarm}, slices.Sorted(maps.Keys(rang))); diff != "" {
			t.Errorf("written down for %s (-want +got):\n%s", alarm, diff)
		}
		fired[alarm] = fired[alarm] || rang[alarm] > 0
	}
	for alarm := range all {
		if !fired[alarm] {
			t.Errorf("nothing makes %s ring: record its fault in infra/local/e2e, or write it down with the reason", alarm)
		}
	}
}

// A run that works, with what comes and goes by itself, rings nothing.
func TestSpellsRingNothing(t *testing.T) {
	all, _ := alarmsOf(t, nil)
	for name, does := range spells() {
		s := well()
		does(s)
		if rang := ringing(t, all, s.Numbers, begins-5, played); len(rang) > 0 {
			t.Errorf("%s: %v ring", name, rang)
		}
	}
}

// A function that misses three of its ticks is noticed before two more are due.
func TestASilentFunctionIsNoticed(t *testing.T) {
	all, runs := runAlarms(t), recorded(t)
	for f, every := range map[string]int{"Provision": 1, "Lifecycle": 1, "Disrupt": 1, "Refresh": refresh} {
		r := runs["silence"]
		i := slices.IndexFunc(r.Faults, func(x alarms.Fault) bool { return slices.Equal(x.Alarms, []string{f + "Silent"}) })
		if i < 0 {
			t.Errorf("no run has %s silent", f)
			continue
		}
		if rings, err := all[f+"Silent"].Rings(r.Numbers, (r.Faults[i].From+4*every)*60); err != nil || !rings {
			t.Errorf("%s does not ring 4 ticks after its last, %v", f, err)
		}
	}
}

// Each alarm says what to do, and names the row of the table of troubles that says more.
func TestAlarmsSayWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../../functions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, texts := alarmsOf(t, nil)
	for name, said := range texts {
		what, row, ok := strings.Cut(said, `. functions/README.md, "When something does not work": alarm `)
		if !ok || row == "" || !strings.HasSuffix(name, row) {
			t.Errorf("%s names no row of its own: %q", name, said)
		}
		if !strings.ContainsAny(what, ":;") {
			t.Errorf("%s does not say what to do: %q", name, what)
		}
		if !strings.Contains(string(page), "alarm `"+row+"`") {
			t.Errorf("functions/README.md has no row for alarm `%s`", row)
		}
	}
}

// A threshold that is a setting moves with that setting, and no other alarm does.
func TestThresholdsAreTheirSettings(t *testing.T) {
	before, _ := alarmsOf(t, nil)
	after, _ := alarmsOf(t, map[string]any{"priceAlarmUSD": 99})
	for name, over := range map[string]float64{"Price": 99} {
		a := before[name]
		a.Threshold = over
		before[name] = a
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	without, _ := alarmsOf(t, map[string]any{"priceAlarmUSD": nil})
	if _, price := without["Price"]; price || len(without) != len(before)-1 {
		t.Errorf("without settings there are %v", slices.Sorted(maps.Keys(without)))
	}
}
