package alarms

import "testing"

// TestTheTablesOfTheUserGuide are the two of "How alarm state is evaluated when data is missing", X breaching, 0 not, -
// missing, the newest last. The alarms evaluate three periods, of which all three or two must breach.
func TestTheTablesOfTheUserGuide(t *testing.T) {
	const before = State("before")
	for _, c := range []struct {
		of                                       int
		points                                   string
		missing, ignore, breaching, notBreaching State
	}{
		{3, "0-X-X", OK, OK, OK, OK},
		{3, "----0", OK, OK, OK, OK},
		{3, "-----", Insufficient, before, Ringing, OK},
		{3, "0XX-X", Ringing, Ringing, Ringing, Ringing},
		{3, "--X--", Ringing, before, Ringing, OK},
		{2, "0-X-X", Ringing, Ringing, Ringing, Ringing},
		{2, "00X0X", Ringing, Ringing, Ringing, Ringing},
		{2, "0-X--", OK, OK, Ringing, OK},
		{2, "----0", OK, OK, Ringing, OK},
		{2, "----X", Ringing, before, Ringing, OK},
	} {
		for treat, want := range map[string]State{"missing": c.missing, "ignore": c.ignore, "breaching": c.breaching, "notBreaching": c.notBreaching} {
			n := Numbers{}
			for i, p := range c.points {
				if p != '-' {
					n.Put("m", 60*i+30, map[rune]float64{'X': 9, '0': 1}[p])
				}
			}
			a := Alarm{Metrics: []Metric{{Series: "m", Statistic: "Sum"}}, Period: 60, Over: true, Threshold: 5, Datapoints: c.of, Evaluated: 3, Missing: treat}
			got, err := a.Evaluate(n, 60*len(c.points), before)
			if err != nil || got != want {
				t.Errorf("%d of 3, %s, %s: %s, %v, want %s", c.of, c.points, treat, got, err, want)
			}
		}
	}
}

// FILL makes a series of what is there now and then; of nothing at all it makes nothing.
func TestFilledSeries(t *testing.T) {
	a := Alarm{Metrics: []Metric{{ID: "a", Series: "a", Statistic: "Sum"}}, Expression: "FILL(a, 0)", Period: 60, Threshold: 1, Datapoints: 3, Evaluated: 3,
		Missing: "notBreaching"}
	n := Numbers{}
	n.Put("a", 20, 1)
	for now, want := range map[int]State{60: OK, 180: OK, 240: Ringing, 300: Ringing, 360: OK} { // the last: nothing is left in the range
		if got, err := a.Evaluate(n, now, OK); err != nil || got != want {
			t.Errorf("after %d s: %s, %v, want %s", now, got, err, want)
		}
	}
	if _, err := (Alarm{Expression: "FILL(z, 0)", Evaluated: 1}).Evaluate(n, 60, OK); err == nil {
		t.Error("an expression about no metric is evaluated")
	}
}
