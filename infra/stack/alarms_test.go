package stack_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner/infra/alarms"
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
	context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "push": true, "priceAlarmUSD": 12.5, "nodesAlarm": 300}
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

// fault is what goes wrong, and which alarms ring for it: these and no others.
type fault struct {
	does  func(story)
	rings []string
}

// spells are over by themselves and ring nothing.
func spells() map[string]fault {
	return map[string]fault{
		"all is well":          {func(story) {}, nil},
		"a pass fails":         {func(s story) { s.Put(ofFunction("Errors", "Provision"), begins*60, 1) }, nil},
		"a refresh fails":      {func(s story) { s.Put(ofFunction("Errors", "Refresh"), begins*60, 1) }, nil},
		"two ticks are missed": {func(s story) { s.stop(ofFunction("Invocations", "Provision"), begins, begins+2) }, nil},
		"a refresh is missed":  {func(s story) { s.stop(ofFunction("Invocations", "Refresh"), begins, begins+refresh+1) }, nil},
		"two passes are cut short": {func(s story) {
			s.Put(ofCluster("joiner_passes_cut_short_total"), begins*60, 1)
			s.Put(ofCluster("joiner_passes_cut_short_total"), begins*60+70, 1)
		}, nil},
		"a burst waits with us": {func(s story) { s.Put(ofFunction("Throttles", "StateChange"), begins*60, 40) }, nil},
	}
}

func faults() map[string]fault {
	all := spells()
	for _, f := range []string{"Provision", "Lifecycle", "Disrupt", "Refresh", "Wake"} {
		every := map[string]int{"Refresh": refresh}[f]
		all[f+" fails always"] = fault{func(s story) { s.put(ofFunction("Errors", f), max(1, every), 1) }, []string{f + "Errors"}}
	}
	for _, f := range []string{"Provision", "Lifecycle", "Disrupt"} {
		all[f+" is not run any more"] = fault{func(s story) { s.stop(ofFunction("Invocations", f), begins, played) }, []string{f + "Silent"}}
	}
	all["Lifecycle was never run"] = fault{func(s story) { s.stop(ofFunction("Invocations", "Lifecycle"), 0, played) }, []string{"LifecycleSilent"}}
	all["Refresh is not run any more"] = fault{func(s story) { // and nobody measures the fleet
		s.stop(ofFunction("Invocations", "Refresh"), begins, played)
		s.stop(ofCluster("joiner_catalog_age_seconds"), begins, played)
	}, []string{"RefreshSilent", "CatalogOld"}}
	for _, f := range []string{"SpotInterruption", "ReservationInterruption", "Rebalance", "ScheduledChange", "StateChange"} {
		all[f+" gives an event up"] = fault{func(s story) {
			s.put("AWS/SQS ApproximateNumberOfMessagesVisible{Name=QueueName, Value=${"+f+"DeadLetters.QueueName}}", 1, 1)
		}, []string{f + "DeadLetters"}}
		if f != "StateChange" { // Lambda takes its events from a queue
			all["events of "+f+" find no queue"] = fault{func(s story) { s.Put(ofFunction("AsyncEventsDropped", f), begins*60, 1) }, []string{f + "EventsDropped"}}
		}
		all["the rule of "+f+" may not invoke it"] = fault{func(s story) {
			s.Put("AWS/Events FailedInvocations{Name=RuleName, Value="+f+"On"+f+"}", begins*60, 1)
		}, []string{f + "RuleFailed"}}
	}
	for _, f := range []string{"SpotInterruption", "ReservationInterruption"} {
		all["more notices than "+f+" may handle"] = fault{func(s story) { s.Put(ofFunction("Throttles", f), begins*60, 40) }, []string{f + "Throttles"}}
	}
	for _, f := range []string{"Provision", "Lifecycle", "Refresh"} {
		all["Lambda breaks a loop of "+f] = fault{func(s story) { s.Put(ofFunction("RecursiveInvocationsDropped", f), begins*60, 1) }, []string{f + "RecursionStopped"}}
	}
	for name, m := range map[string]struct {
		metric string
		value  float64
	}{
		"PodsUnplaced": {"karpenter_pods_provisioning_unbound_time_seconds", 1200}, "CatalogOld": {"joiner_catalog_age_seconds", 30_000},
		"NoticesLate": {"joiner_notice_handled_seconds", 90}, "OtherLeader": {"joiner_changes_refused_total", 1}, "Faults": {"joiner_faults_total", 1},
		"PassesCutShort": {"joiner_passes_cut_short_total", 1},
		"PushMissed":     {"joiner_push_missed_total", 3}, "Price": {"joiner_price_usd_per_hour", 13}, "Nodes": {"karpenter_cluster_state_node_count", 301},
	} {
		all["fault for "+name] = fault{func(s story) { s.put(ofCluster(m.metric), 1, m.value) }, []string{name}}
	}
	return all
}

// Every alarm rings for the fault that it is for, within half an hour and with no other, and rings for nothing else.
func TestEveryAlarmRingsForItsFault(t *testing.T) {
	all, _ := alarmsOf(t, nil)
	fired := map[string]bool{}
	for name, f := range faults() {
		s := well()
		f.does(s)
		var rang []string
		for _, alarm := range slices.Sorted(maps.Keys(all)) {
			at := 0
			for minute := begins - 5; minute < played; minute++ {
				rings, err := all[alarm].Rings(s.Numbers, minute*60)
				if err != nil {
					t.Fatal(err)
				}
				if rings && at == 0 {
					at = minute
				}
			}
			if at == 0 {
				continue
			}
			rang, fired[alarm] = append(rang, alarm), true
			if late := at - begins; late > 60 || late > 30 && !strings.HasPrefix(alarm, "CatalogOld") {
				t.Errorf("%s: %s rings %d minutes after the fault began", name, alarm, late)
			}
		}
		want := slices.Sorted(slices.Values(f.rings))
		if diff := cmp.Diff(want, rang); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for alarm := range all {
		if !fired[alarm] {
			t.Errorf("nothing makes %s ring", alarm)
		}
	}
}

// A function that misses three of its ticks is noticed before two more are due.
func TestASilentFunctionIsNoticed(t *testing.T) {
	all, _ := alarmsOf(t, nil)
	for f, every := range map[string]int{"Provision": 1, "Lifecycle": 1, "Disrupt": 1, "Refresh": refresh} {
		s := well()
		s.stop(ofFunction("Invocations", f), begins, played)
		if rings, err := all[f+"Silent"].Rings(s.Numbers, (begins+4*every)*60); err != nil || !rings {
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
	after, _ := alarmsOf(t, map[string]any{"priceAlarmUSD": 99, "nodesAlarm": 7})
	for name, over := range map[string]float64{"Price": 99, "Nodes": 7} {
		a := before[name]
		a.Threshold = over
		before[name] = a
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	without, _ := alarmsOf(t, map[string]any{"priceAlarmUSD": nil, "nodesAlarm": nil})
	if _, price := without["Price"]; price || len(without) != len(before)-2 {
		t.Errorf("without settings there are %v", slices.Sorted(maps.Keys(without)))
	}
}
