// Package bill estimates what the stack costs in a month.
//
// It counts every invocation, event, log byte, metric, alarm, request to S3 and endpoint, from what passes were measured
// to take (usage.json), what a cluster does, and what Assumptions names. Start with Estimate. It refuses to know an
// account's discounts and free tiers. Prices are those of us-east-1.
package bill

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
)

// Prices in USD.
const (
	HoursPerMonth = 730
	PerRequest    = 0.20 / 1e6
	PerTick       = 1.00 / 1e6   // of EventBridge Scheduler
	PerGBSecond   = 0.0000133334 // arm64
	PerTrace      = 5.0 / 1e6
	PerMetric     = 0.30
	PerAlarm      = 0.10 // for each metric of an alarm
	PerDashboard  = 3.00
	PerGBLog      = 0.50
	PerPut        = 5.0 / 1e6
	PerGet        = 0.4 / 1e6
	PerEndpoint   = 0.01 // an hour in a zone
	PerGBNAT      = 0.045
	PerGBZone     = 0.02 // between two zones, both ways
	PerQueueCall  = 0.40 / 1e6

	// KarpenterLeast and KarpenterMost are what two pods of 1 vCPU and 1 GiB cost: as a part of nodes that are there, and
	// on Fargate or a node of their own.
	KarpenterLeast = 52
	KarpenterMost  = 143
)

// Passes is what the functions with a schedule are called, in the order of the table.
func Passes() []string { return []string{"provision", "lifecycle", "disrupt", "refresh"} }

// Stack is what the template says.
type Stack struct {
	TicksPerHour map[string]float64 // by function
	Alarms       int                // metrics of alarms
	Dashboards   int
	Tracing      bool
	Queues       int // that functions poll
}

// Usual is the stack as it is without further settings.
func Usual() Stack {
	const alarms = 33
	return Stack{TicksPerHour: map[string]float64{"provision": 60, "lifecycle": 60, "disrupt": 60, "refresh": 12},
		Alarms: alarms, Dashboards: 1, Tracing: true, Queues: 1}
}

// Cluster is what a cluster does.
type Cluster struct {
	Nodes     int
	NodeHours float64 // that a node lives in the mean
	Pools     int
	MemoryMiB int // of the functions with a schedule
}

// Line is one line of the bill.
type Line struct {
	What, How string
	USD       float64
}

// pass is what one pass takes.
type pass struct {
	Function   string
	Nodes      int
	CPUSeconds float64
	LogBytes   int
	Series     int
}

// measured is the content of usage.json.
type measured struct {
	How      string
	Passes   []pass
	Turnover struct {
		LogBytes int
		Wakes    float64 // of other functions, for each node
	}
}

//go:embed usage.json
var usageText []byte

// How says how passes were measured.
func How() (string, error) {
	m, err := readUsage()
	return m.How, err
}

func readUsage() (m measured, err error) {
	if err := json.Unmarshal(usageText, &m); err != nil {
		return m, fmt.Errorf("read usage.json: %w", err)
	}
	large := pass{Function: "disrupt"}
	for _, p := range m.Passes {
		if p.Function == large.Function && p.Nodes > large.Nodes {
			large = p
		}
	}
	large.Nodes, large.CPUSeconds = largeCluster, largeDisruptSeconds
	m.Passes = append(m.Passes, large)
	return m, nil
}

// What is assumed beside what was measured; Assumptions says it in words.
const (
	overNetwork     = 0.3   // seconds in which a pass waits for AWS and the API server
	staySeconds     = 50    // an invocation that found work stays
	refreshSeconds  = 3.0   // of a refresh
	refreshPerNode  = 0.002 // seconds
	eventSeconds    = 1.3   // of a notice or a change of state
	eventsPerNode   = 4     // pending, running, shutting-down, terminated
	cpuShare        = 1769  // MiB of memory that come with one vCPU
	lambdaLines     = 350   // bytes that Lambda itself logs about an invocation
	podsPerNode     = 15
	bytesPerPod     = 1200  // of a list, compressed
	catalogBytes    = 250e3 // that each tick reads from S3
	reasonSeries    = 24    // metrics by reason of a cluster that is busy, beside those of passes
	pollsPerHour    = 180   // by one poller of a queue
	pollersPerQueue = 5

	largeCluster        = 2000 // nodes
	largeDisruptSeconds = 2.0  // of a processor, for a pass of disrupt there
)

// Assumptions are the sentences about what the bill counts with and nobody measured, for clusters whose nodes live so
// many hours.
func Assumptions(nodeHours float64) []string {
	return []string{
		fmt.Sprintf("A pass waits %.1f s for AWS and the API server. An invocation that finds a node coming or going stays for %d s.", overNetwork, staySeconds),
		fmt.Sprintf("A pass of disrupt over %d nodes takes %.0f s of a processor, and writes as much as one over the largest cluster that was measured.", largeCluster, largeDisruptSeconds),
		fmt.Sprintf("A refresh takes %.0f s, and %.0f ms more for each node. Lambda itself logs %d bytes about an invocation.", refreshSeconds, refreshPerNode*1000, lambdaLines),
		fmt.Sprintf("A node lives %.0f hours, and %d pods run on it. Its life is %d state changes, each of which is an invocation of %.1f s.", nodeHours, podsPerNode, eventsPerNode, eventSeconds),
		fmt.Sprintf("A cluster that is busy has %d more metrics, by reason. A tick reads %.0f kB of catalog, and a pod in a list takes %d bytes on the wire.", reasonSeries, catalogBytes/1000, bytesPerPod),
		fmt.Sprintf("Each queue is polled %d times an hour by each of %d pollers.", pollsPerHour, pollersPerQueue),
	}
}

// at is what a pass over so many nodes takes: between two measured sizes and beyond the largest in proportion.
func (m measured) at(function string, nodes int) pass {
	var below, above, largest, second pass
	for _, p := range m.Passes {
		if p.Function != function {
			continue
		}
		if p.Nodes <= nodes && p.Nodes >= below.Nodes {
			below = p
		}
		if p.Nodes >= nodes && (above.Nodes == 0 || p.Nodes < above.Nodes) {
			above = p
		}
	}
	for _, p := range m.Passes {
		if p.Function == function && p.Nodes > largest.Nodes {
			second, largest = largest, p
		}
	}
	switch {
	case below.Nodes == 0:
		return above
	case above.Nodes == below.Nodes:
		return below
	case above.Nodes == 0:
		below, above = second, largest
	}
	part := float64(nodes-below.Nodes) / float64(above.Nodes-below.Nodes)
	below.CPUSeconds += part * (above.CPUSeconds - below.CPUSeconds)
	below.LogBytes += int(part * float64(above.LogBytes-below.LogBytes))
	return below
}

// Estimate is the bill of a month, line by line.
func Estimate(s Stack, c Cluster) ([]Line, error) {
	m, err := readUsage()
	if err != nil {
		return nil, err
	}
	gone := HoursPerMonth * float64(c.Nodes) / c.NodeHours // nodes that came and went
	events := gone * eventsPerNode
	wakes := gone * m.Turnover.Wakes
	busy := 1 - math.Exp(-2*gone/HoursPerMonth/60) // part of the minutes in which a node comes or goes
	var ticks, seconds, logBytes float64
	series, how := 0, ""
	for _, f := range Passes() {
		n := s.TicksPerHour[f] * HoursPerMonth
		each, p := c.invocationSeconds(m, f, busy)
		ticks, seconds, logBytes = ticks+n, seconds+n*each, logBytes+n*float64(p.LogBytes)
		series += p.Series
		how += fmt.Sprintf("%s %.1f s, ", f, each)
	}
	invocations := ticks + events + wakes
	gbSeconds := seconds*float64(c.MemoryMiB)/1024 + events*eventSeconds/2
	logBytes += gone*float64(m.Turnover.LogBytes) + invocations*lambdaLines
	series += 3 + c.Pools*4
	if busy > 0.1 {
		series += reasonSeries
	}
	traces := 0.0
	if s.Tracing {
		traces = invocations
	}
	puts := s.TicksPerHour["refresh"] * HoursPerMonth
	lines := []Line{
		{"invocations", fmt.Sprintf("%s ticks, %s events, %s wake-ups", thousands(ticks), thousands(events), thousands(wakes)), invocations*PerRequest + ticks*PerTick},
		{"seconds", how + fmt.Sprintf("events %.1f s: %s GB-s", eventSeconds, thousands(gbSeconds)), gbSeconds * PerGBSecond},
		{"traces", thousands(traces), traces * PerTrace},
		{"metrics", fmt.Sprintf("%d", series), float64(series) * PerMetric},
		{"alarms", fmt.Sprintf("%d", s.Alarms), float64(s.Alarms) * PerAlarm},
		{"dashboard", fmt.Sprintf("%d", s.Dashboards), float64(s.Dashboards) * PerDashboard},
		{"log", fmt.Sprintf("%.2f GB", logBytes/1e9), logBytes / 1e9 * PerGBLog},
		{"S3", fmt.Sprintf("%s PUTs, %s GETs", thousands(puts), thousands(ticks)), puts*PerPut + ticks*PerGet},
	}
	if s.Queues > 0 {
		calls := events + float64(s.Queues)*pollsPerHour*pollersPerQueue*HoursPerMonth
		lines = append(lines, Line{"queues", thousands(calls) + " calls", calls * PerQueueCall})
	}
	return lines, nil
}

// invocationSeconds is how long one tick of a function takes, and what its pass takes.
func (c Cluster) invocationSeconds(m measured, function string, busy float64) (seconds float64, p pass) {
	if function == "refresh" {
		return refreshSeconds + refreshPerNode*float64(c.Nodes), pass{LogBytes: 1000}
	}
	p = m.at(function, c.Nodes)
	rest := overNetwork + p.CPUSeconds*max(1, cpuShare/float64(c.MemoryMiB))
	if function == "disrupt" {
		return rest, p
	}
	return rest*(1-busy) + max(staySeconds, rest)*busy, p
}

// InVPC is what comes on top for functions in a VPC: interface endpoints, or NAT that is there anyway, and lists of pods
// that come from another zone two times of three.
func InVPC(s Stack, c Cluster, endpoints, subnets int) []Line {
	ticks := 0.0
	for _, n := range s.TicksPerHour {
		ticks += n * HoursPerMonth
	}
	lists := (ticks - s.TicksPerHour["refresh"]*HoursPerMonth) * float64(c.Nodes) * podsPerNode * bytesPerPod / 1e9
	hours := float64(endpoints * subnets * HoursPerMonth)
	return []Line{
		{"interface endpoints", fmt.Sprintf("%d in %d subnets", endpoints, subnets), hours * PerEndpoint},
		{"NAT instead", fmt.Sprintf("%.0f GB of S3, if that has no gateway endpoint", ticks*catalogBytes/1e9), ticks * catalogBytes / 1e9 * PerGBNAT},
		{"lists of pods between zones", fmt.Sprintf("%.0f GB", lists*2/3), lists * 2 / 3 * PerGBZone},
	}
}

// Sum is the total of lines.
func Sum(lines []Line) (usd float64) {
	for _, l := range lines {
		usd += l.USD
	}
	return usd
}

// thousands writes a whole number with commas.
func thousands(n float64) string {
	s := fmt.Sprintf("%.0f", n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
