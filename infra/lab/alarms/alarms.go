// Package alarms decides as CloudWatch does whether an alarm rings: by periods, how many of them count, and what it
// makes of data that is missing.
//
// It knows metric alarms for which missing data breaches or does not, and the one function of metric math that the
// stack uses, and keeps what a run would have told CloudWatch as text. It refuses to know who measures, and the other
// two ways with missing data, for which the rules leave cases open. The rules are those of the CloudWatch user guide,
// whose tables its test holds it to. CloudWatch does not say how far it looks back for data; the tables show two
// periods more than an alarm evaluates.
package alarms

import (
	"fmt"
	"slices"
	"strings"
)

// Metric is one series of numbers with how it is put into periods.
type Metric struct {
	ID        string // in an expression
	Series    string // namespace, name and dimensions, in one text
	Statistic Statistic
}

// Statistic makes one value of the numbers of a period.
type Statistic string

// The statistics that the stack uses.
const (
	Sum     Statistic = "Sum"
	Maximum Statistic = "Maximum"
)

// Alarm is one alarm.
type Alarm struct {
	Name       string
	Metrics    []Metric
	Expression string // empty: the one metric
	Period     int    // seconds
	Over       bool   // it rings over the threshold, else under it
	Threshold  float64
	Datapoints int // of the periods evaluated, how many must breach
	Evaluated  int // periods
	// MissingBreaches has missing data breach, else it does not.
	MissingBreaches bool
}

// Numbers are what was measured, by series.
type Numbers map[string][]Number

// Number was measured at a second.
type Number struct {
	At    int
	Value float64
}

// Put adds a number to a series.
func (n Numbers) Put(series string, at int, value float64) {
	n[series] = append(n[series], Number{at, value})
}

// lookBack is how many periods more than it evaluates CloudWatch asks for.
const lookBack = 2

// point is the value of one period, or that there is none.
type point struct {
	value float64
	known bool
}

// Rings reports whether the alarm is in the state ALARM at a second, at which a period ends.
func (a Alarm) Rings(n Numbers, now int) (bool, error) {
	points, err := a.points(n, now)
	if err != nil {
		return false, fmt.Errorf("evaluate alarm %s: %w", a.Name, err)
	}
	return a.decide(points), nil
}

// points are the values of the periods that CloudWatch asks for, the oldest first.
func (a Alarm) points(n Numbers, now int) ([]point, error) {
	count := a.Evaluated + lookBack
	byID := map[string][]point{}
	for _, m := range a.Metrics {
		if m.Statistic != Sum && m.Statistic != Maximum {
			return nil, fmt.Errorf("metric %s has the statistic %q: want %s or %s", m.Series, m.Statistic, Sum, Maximum)
		}
		for i := range count {
			from := now - (count-i)*a.Period
			byID[m.ID] = append(byID[m.ID], period(m.Statistic, n[m.Series], from, from+a.Period))
		}
	}
	if a.Expression == "" {
		return byID[a.Metrics[0].ID], nil
	}
	return fill(a.Expression, byID)
}

// period is what the statistic makes of the numbers from one second on until before another.
func period(statistic Statistic, numbers []Number, from, until int) (p point) {
	for _, x := range numbers {
		switch {
		case x.At < from || x.At >= until:
		case !p.known:
			p = point{x.Value, true}
		case statistic == Maximum:
			p.value = max(p.value, x.Value)
		default:
			p.value += x.Value
		}
	}
	return p
}

// fill evaluates FILL of a metric with 0, the one function of metric math that the stack uses. It has nothing to fill
// where there is no value at all.
func fill(expression string, byID map[string][]point) ([]point, error) {
	id, begins := strings.CutPrefix(expression, "FILL(")
	id, ends := strings.CutSuffix(id, ", 0)")
	points := byID[id]
	if !begins || !ends || points == nil {
		return nil, fmt.Errorf("expression %q: want FILL(id, 0) with the id of a metric", expression)
	}
	if slices.ContainsFunc(points, func(p point) bool { return p.known }) {
		for i := range points {
			points[i].known = true // with 0, unless it has a value
		}
	}
	return points, nil
}

// decide takes the newest values there are, as many as the alarm evaluates. Only where there are fewer is something put
// in place of what is missing, as seldom as possible.
func (a Alarm) decide(points []point) bool {
	var known []float64
	for _, p := range points {
		if p.known {
			known = append(known, p.value)
		}
	}
	known = known[max(0, len(known)-a.Evaluated):]
	breaching := 0
	for _, v := range known {
		if a.Over && v > a.Threshold || !a.Over && v < a.Threshold {
			breaching++
		}
	}
	if a.MissingBreaches {
		breaching += a.Evaluated - len(known)
	}
	return breaching >= a.Datapoints
}
