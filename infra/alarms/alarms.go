// Package alarms decides as CloudWatch does whether an alarm rings: by periods, how many of them count, and what it
// makes of data that is missing.
//
// It knows metric alarms and the one function of metric math that the stack uses. It refuses to know where numbers come
// from. The rules are those of the CloudWatch user guide, whose tables its test holds it to. CloudWatch does not say
// how far it looks back for data; the tables show two periods more than an alarm evaluates.
package alarms

import (
	"fmt"
	"regexp"
	"slices"
)

// Metric is one series of numbers with how it is put into periods.
type Metric struct {
	ID        string // in an expression
	Series    string // namespace, name and dimensions, in one text
	Statistic string // Sum or Maximum
}

// Alarm is one alarm.
type Alarm struct {
	Name       string
	Metrics    []Metric
	Expression string // empty: the one metric
	Period     int    // seconds
	Over       bool   // it rings over the threshold, else under it
	Threshold  float64
	Datapoints int    // of the periods evaluated, how many must breach
	Evaluated  int    // periods
	Missing    string // breaching, notBreaching, ignore or missing
}

// State is that of an alarm.
type State string

// The states of an alarm.
const (
	OK           State = "OK"
	Ringing      State = "ALARM"
	Insufficient State = "INSUFFICIENT_DATA"
)

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

// Evaluate is the state of the alarm at a second, after the state given. Periods end there.
func (a Alarm) Evaluate(n Numbers, now int, before State) (State, error) {
	points, err := a.points(n, now)
	if err != nil {
		return before, err
	}
	return a.decide(points, before), nil
}

// points are the values of the periods that CloudWatch asks for, the oldest first.
func (a Alarm) points(n Numbers, now int) ([]point, error) {
	count := a.Evaluated + lookBack
	byID := map[string][]point{}
	for _, m := range a.Metrics {
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
func period(statistic string, numbers []Number, from, until int) (p point) {
	for _, x := range numbers {
		switch {
		case x.At < from || x.At >= until:
		case !p.known:
			p = point{x.Value, true}
		case statistic == "Maximum":
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
	found := regexp.MustCompile(`^FILL\((\w+), 0\)$`).FindStringSubmatch(expression)
	if len(found) == 0 || byID[found[1]] == nil {
		return nil, fmt.Errorf("evaluate %q: want FILL(id, 0) with the id of a metric", expression)
	}
	points := byID[found[1]]
	if slices.ContainsFunc(points, func(p point) bool { return p.known }) {
		for i := range points {
			points[i].known = true // with 0, unless it has a value
		}
	}
	return points, nil
}

// decide takes the newest values there are, as many as the alarm evaluates. Only where there are fewer is something put
// in place of what is missing, as seldom as possible.
func (a Alarm) decide(points []point, before State) State {
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
	missing := a.Evaluated - len(known)
	if a.Missing == "breaching" {
		breaching, missing = breaching+missing, 0
	}
	if a.Missing == "notBreaching" {
		missing = 0
	}
	switch {
	case breaching >= a.Datapoints:
		return Ringing
	case missing == 0:
		return OK
	case len(known) == 0 && a.Missing == "ignore":
		return before
	case len(known) == 0:
		return Insufficient
	}
	// Nothing is put in place of what is missing: a breaching value rings when nothing speaks against it.
	switch {
	case breaching < len(known):
		return OK
	case a.Missing == "ignore":
		return before
	}
	return Ringing
}
