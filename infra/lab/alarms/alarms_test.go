package alarms

import "testing"

// TestTheTablesOfTheUserGuide are the two of "How alarm state is evaluated when data is missing", X breaching, 0 not, -
// missing, the newest last. The alarms evaluate three periods, of which all three or two must breach.
func TestTheTablesOfTheUserGuide(t *testing.T) {
	for _, c := range []struct {
		of                      int
		points                  string
		breaching, notBreaching bool // whether it rings, by what missing data counts as
	}{
		{3, "0-X-X", false, false},
		{3, "0----", false, false},
		{3, "-----", true, false},
		{3, "0XX-X", true, true},
		{3, "--X--", true, false},
		{2, "0-X-X", true, true},
		{2, "00X0X", true, true},
		{2, "0-X--", true, false},
		{2, "----0", true, false},
		{2, "---X-", true, false},
	} {
		for missingBreaches, want := range map[bool]bool{true: c.breaching, false: c.notBreaching} {
			n := Numbers{}
			for i, p := range c.points {
				if p != '-' {
					n.Put("m", 60*i+30, map[rune]float64{'X': 9, '0': 1}[p])
				}
			}
			a := Alarm{Metrics: []Metric{{Series: "m", Statistic: Sum}}, Period: 60, Over: true, Threshold: 5, Datapoints: c.of, Evaluated: 3, MissingBreaches: missingBreaches}
			got, err := a.Rings(n, 60*len(c.points))
			if err != nil || got != want {
				t.Errorf("%d of 3, %s, missing data breaches %t: %t, %v, want %t", c.of, c.points, missingBreaches, got, err, want)
			}
		}
	}
}

// What speaks against ringing is forgotten with the range: the second row of the first table, one period later.
func TestAnOldValueIsForgotten(t *testing.T) {
	n := Numbers{}
	n.Put("m", 30, 1)
	a := Alarm{Metrics: []Metric{{Series: "m", Statistic: Maximum}}, Period: 60, Over: true, Threshold: 5, Datapoints: 3, Evaluated: 3, MissingBreaches: true}
	for now, want := range map[int]bool{300: false, 360: true} {
		if got, err := a.Rings(n, now); err != nil || got != want {
			t.Errorf("after %d s: %t, %v, want %t", now, got, err, want)
		}
	}
}

// A period has one value: the sum or the largest of its numbers.
func TestStatistics(t *testing.T) {
	n := Numbers{}
	for i, v := range []float64{4, 3, 2} {
		n.Put("m", 10*i, v)
	}
	for statistic, over := range map[Statistic]float64{Sum: 9, Maximum: 4} {
		for threshold, want := range map[float64]bool{over - 0.5: true, over: false} {
			a := Alarm{Metrics: []Metric{{Series: "m", Statistic: statistic}}, Period: 60, Over: true, Threshold: threshold, Datapoints: 1, Evaluated: 1}
			if got, err := a.Rings(n, 60); err != nil || got != want {
				t.Errorf("%s over %v: %t, %v, want %t", statistic, threshold, got, err, want)
			}
		}
	}
	if _, err := (Alarm{Metrics: []Metric{{Series: "m", Statistic: "p99"}}, Period: 60, Evaluated: 1}).Rings(n, 60); err == nil {
		t.Error("a statistic that is not known is evaluated")
	}
}

// FILL makes a series of what is there now and then; of nothing at all it makes nothing.
func TestFilledSeries(t *testing.T) {
	a := Alarm{Metrics: []Metric{{ID: "a", Series: "a", Statistic: Sum}}, Expression: "FILL(a, 0)", Period: 60, Threshold: 1, Datapoints: 3, Evaluated: 3}
	n := Numbers{}
	n.Put("a", 20, 1)
	for now, want := range map[int]bool{60: false, 180: false, 240: true, 300: true, 360: false} { // the last: nothing is left in the range
		if got, err := a.Rings(n, now); err != nil || got != want {
			t.Errorf("after %d s: %t, %v, want %t", now, got, err, want)
		}
	}
	if _, err := (Alarm{Expression: "FILL(z, 0)", Evaluated: 1}).Rings(n, 60); err == nil {
		t.Error("an expression about no metric is evaluated")
	}
}
