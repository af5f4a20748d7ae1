// Package bill estimates what the stack costs in a month.
//
// It counts every invocation, event, log byte, metric, alarm, request to S3 and endpoint, from what invocations were
// measured to take (invocations.json, usage.json), what a cluster does, and what Assumptions names. Start with Estimate.
// It refuses to know an account's discounts and free tiers. Prices are those of us-east-1.
package bill

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
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

	// KarpenterLeast and KarpenterMost are the cost of two pods of 1 vCPU and 1 GiB: as a part of nodes that are there,
	// and on Fargate or a node of their own.
	KarpenterLeast = 52
	KarpenterMost  = 143
)

// Passes returns the names of the functions with a schedule, in the order of the table.
func Passes() []string { return []string{"provision", "lifecycle", "disrupt", "refresh"} }

// Stack holds what the template says.
type Stack struct {
	TicksPerHour map[string]float64 // by function
	Alarms       int                // metrics of alarms
	Dashboards   int                // of CloudWatch
	Tracing      bool               // X-Ray traces every invocation
	Queues       int                // that functions poll
}

// Usual is the stack as it is without further settings.
func Usual() Stack {
	const alarms = 31
	return Stack{TicksPerHour: map[string]float64{"provision": 60, "lifecycle": 60, "disrupt": 60, "refresh": 12},
		Alarms: alarms, Dashboards: 1, Tracing: true, Queues: 1}
}

// Cluster describes a cluster by what its bill depends on.
type Cluster struct {
	Nodes     int
	NodeHours float64 // that a node lives in the mean
	Pools     int
	MemoryMiB int // of the functions with a schedule
}

// Line is one line of the bill.
type Line struct {
	What string  // what is billed, such as traces
	How  string  // the amount, with its unit
	USD  float64 // per month
}

// Measured holds what the functions' binaries took, in clusters of several sizes.
type Measured struct {
	How   string `json:"how"`
	Sizes []Size `json:"sizes"` // by Nodes
}

// Size holds what was measured in a cluster of one size. What is 0 was not measured there, but for Taken.S3Puts.
type Size struct {
	Nodes        int              `json:"nodes"`
	Pods         int              `json:"pods"`
	SeriesAtRest int              `json:"seriesAtRest"` // metrics that functions write when nothing is to be done
	Series       int              `json:"series"`       // and in all
	SeriesOfPool int              `json:"seriesOfPool"` // those of all that are of the one NodePool
	Functions    map[string]Ticks `json:"functions"`
}

// Ticks are invocations of one function by the schedule.
type Ticks struct {
	Warm Taken `json:"warm"` // in a process that ticked a minute before, while kubelets send their heartbeats
	Cold Taken `json:"cold"` // in a new process
}

// Taken holds what one invocation takes.
type Taken struct {
	CPUSeconds float64 `json:"cpuSeconds"` // of a whole processor
	Requests   int     `json:"requests"`   // to the API server
	BytesRead  int64   `json:"bytesRead"`  // of its answers, on the wire
	LogBytes   int     `json:"logBytes"`   // metrics and Lambda's own lines among them
	S3Gets     int     `json:"s3Gets"`
	S3Puts     int     `json:"s3Puts"`
}

// inMemory holds what passes of the functions on a cluster in memory were measured to take. That is the life of a node,
// and what ticks write into log and metrics where the binaries were not measured for it.
type inMemory struct {
	How    string
	Passes []struct {
		Function         string
		Nodes            int
		LogBytes, Series int
	}
	// Turnover holds what a node takes from its launch until it is gone, beside what ticks at rest take.
	Turnover struct {
		LogBytes int
		Wakes    float64 // of other functions
	}
}

//go:embed invocations.json
var invocationsText []byte

//go:embed usage.json
var usageText []byte

// figures holds all that was measured.
type figures struct {
	Measured
	memory inMemory
}

func readFigures() (f figures, err error) {
	if err := json.Unmarshal(invocationsText, &f.Measured); err != nil {
		return f, fmt.Errorf("read invocations.json: %w", err)
	}
	if err := json.Unmarshal(usageText, &f.memory); err != nil {
		return f, fmt.Errorf("read usage.json: %w", err)
	}
	return f, nil
}

// How says how ticks, and the lives of nodes, were measured, and for how many nodes ticks were.
func How() (ticks, nodes string, sizes []string, err error) {
	f, err := readFigures()
	for _, s := range f.Sizes {
		sizes = append(sizes, strconv.Itoa(s.Nodes))
	}
	return f.Measured.How, f.memory.How, sizes, err
}

// What is assumed beside what was measured; Assumptions says it in words.
const (
	overNetwork     = 0.3  // seconds in which a tick waits for AWS
	eachRequest     = 0.01 // seconds in which it waits for the API server, for each request
	refreshWaits    = 3.0  // seconds in which a refresh waits for AWS
	leastCPU        = 0.05 // seconds of a processor that a tick takes in a cluster without nodes
	refreshLog      = 1000 // bytes
	reasonSeries    = 24   // metrics by reason of a cluster that is busy, beside those of passes
	otherSeries     = 5    // metrics of refresh, and of what functions ask of the API server
	trafficLog      = 300  // bytes that a tick logs about what it asked of the API server
	poolSeries      = 4    // metrics of a NodePool
	mostInMemory    = 200  // nodes of the clusters in memory
	staySeconds     = 50   // an invocation that found work stays
	processHours    = 2    // that Lambda keeps a process
	eventSeconds    = 1.3  // of a notice or a change of state
	eventsPerNode   = 4    // pending, running, shutting-down, terminated
	cpuShare        = 1769 // MiB of memory that come with one vCPU
	lambdaLines     = 350  // bytes that Lambda itself logs about an invocation
	catalogBytes    = 250e3
	checkpointNodes = 150 // nodes of a cluster at most of which lifecycle stores nothing
	catalogReaders  = 3   // functions that read the catalog whenever refresh has stored it
	pollsPerHour    = 180 // by one poller of a queue
	pollersPerQueue = 5
	betweenZones    = 2.0 / 3 // part of the API server's answers that come from another zone
	foreignSeconds  = 0.3     // of a change of state of an instance that is not the cluster's
	callsPerEvent   = 3       // of a queue: send, receive, delete
	tracedBeyond    = 0.05    // part of the invocations that Lambda traces beyond the first of each second
)

// point is a figure that was measured for so many nodes.
type point struct {
	nodes int
	value float64
}

// interpolate is a figure for so many nodes: between two points and beyond the last in proportion, and as at the first
// below it. From one point alone it goes through zero. Points are sorted by nodes.
func interpolate(points []point, nodes int) float64 {
	switch {
	case len(points) == 0:
		return 0
	case len(points) == 1:
		return points[0].value * float64(nodes) / float64(points[0].nodes)
	case nodes <= points[0].nodes:
		return points[0].value
	}
	i := 1
	for i < len(points)-1 && points[i].nodes < nodes {
		i++
	}
	below, above := points[i-1], points[i]
	part := float64(nodes-below.nodes) / float64(above.nodes-below.nodes)
	return max(0, below.value+part*(above.value-below.value))
}

// figureFor is a figure for so many nodes. Sizes for which it is 0 were not measured.
func (m Measured) figureFor(nodes int, figure func(Size) float64) float64 {
	var points []point
	for _, s := range m.Sizes {
		if v := figure(s); v > 0 {
			points = append(points, point{s.Nodes, v})
		}
	}
	return interpolate(points, nodes)
}

// tick is a figure of a tick of the function: of all that one process does, in the mean.
func (m Measured) tick(s Stack, function string, nodes int, figure func(Taken) float64) float64 {
	warm := m.figureFor(nodes, func(z Size) float64 { return figure(z.Functions[function].Warm) })
	cold := m.figureFor(nodes, func(z Size) float64 { return figure(z.Functions[function].Cold) })
	return warm + (cold-warm)/(s.TicksPerHour[function]*processHours)
}

// logOf returns the bytes that a tick of the function writes into the log, Lambda's own lines among it.
func (f figures) logOf(s Stack, function string, nodes int) float64 {
	if n := f.tick(s, function, nodes, func(t Taken) float64 { return float64(t.LogBytes) }); n > 0 {
		return n
	}
	if function == "refresh" {
		return refreshLog + trafficLog + lambdaLines
	}
	var points []point
	for _, p := range f.memory.Passes {
		if p.Function == function {
			points = append(points, point{p.Nodes, float64(p.LogBytes)})
		}
	}
	return interpolate(points, min(nodes, mostInMemory)) + trafficLog + lambdaLines
}

// Estimate is the bill of a month, line by line.
func Estimate(s Stack, c Cluster) ([]Line, error) {
	m, err := readFigures()
	if err != nil {
		return nil, err
	}
	life := m.memory.Turnover
	gone := HoursPerMonth * float64(c.Nodes) / c.NodeHours // nodes that came and went
	events := gone * eventsPerNode
	wakes := gone * life.Wakes
	busy := 1 - math.Exp(-2*gone/HoursPerMonth/60) // part of the minutes in which a node comes or goes
	var ticks, seconds, logBytes, gets float64
	how := ""
	for _, f := range Passes() {
		n := s.TicksPerHour[f] * HoursPerMonth
		each := c.secondsOf(m.Measured, s, f, busy)
		ticks, seconds = ticks+n, seconds+n*each
		logBytes += n * m.logOf(s, f, c.Nodes)
		gets += n
		how += fmt.Sprintf("%s %.1f s, ", f, each)
	}
	invocations := ticks + events + wakes
	gbSeconds := seconds*float64(c.MemoryMiB)/1024 + events*eventSeconds/2
	logBytes += gone*float64(life.LogBytes) + (events+wakes)*lambdaLines
	series := m.series(c, busy)
	puts := s.TicksPerHour["refresh"] * HoursPerMonth
	if c.Nodes > checkpointNodes {
		puts += s.TicksPerHour["lifecycle"] * HoursPerMonth
	}
	traces := 0.0
	if s.Tracing {
		traces = invocations
	}
	lines := []Line{
		{"invocations", fmt.Sprintf("%s ticks, %s events, %s wake-ups", thousands(ticks), thousands(events), thousands(wakes)), invocations*PerRequest + ticks*PerTick},
		{"seconds", how + fmt.Sprintf("events %.1f s: %s GB-s", eventSeconds, thousands(gbSeconds)), gbSeconds * PerGBSecond},
		{"traces", thousands(traces), traces * PerTrace},
		{"metrics", thousands(series), series * PerMetric},
		{"alarms", fmt.Sprintf("%d", s.Alarms), float64(s.Alarms) * PerAlarm},
		{"dashboard", fmt.Sprintf("%d", s.Dashboards), float64(s.Dashboards) * PerDashboard},
		{"log", fmt.Sprintf("%.2f GB", logBytes/1e9), logBytes / 1e9 * PerGBLog},
		{"S3", fmt.Sprintf("%s PUTs, %s GETs", thousands(puts), thousands(gets)), puts*PerPut + gets*PerGet},
	}
	if s.Queues > 0 {
		calls := events + float64(s.Queues)*pollsPerHour*pollersPerQueue*HoursPerMonth
		lines = append(lines, Line{"queues", thousands(calls) + " calls", calls * PerQueueCall})
	}
	return lines, nil
}

// ForeignInstances returns what so many instances a month that are not the cluster's cost a stack, in USD, if no two of
// their changes come in one batch.
func ForeignInstances(s Stack, instances float64) float64 {
	const secondsPerMonth = HoursPerMonth * 3600
	events := instances * eventsPerNode
	usd := events * (PerRequest + foreignSeconds/2*PerGBSecond + callsPerEvent*PerQueueCall)
	if s.Tracing {
		first := secondsPerMonth * (1 - math.Exp(-events/secondsPerMonth)) // seconds in which one comes
		usd += (first + tracedBeyond*(events-first)) * PerTrace
	}
	return usd
}

// series returns the number of metrics of CloudWatch that the functions write.
func (f figures) series(c Cluster, busy float64) float64 {
	written := func(z Size) float64 { return float64(z.SeriesAtRest) }
	if busy > 0.1 {
		written = func(z Size) float64 { return float64(z.Series) }
	}
	if n := f.figureFor(c.Nodes, written); n > 0 {
		most, ofPool := f.figureFor(c.Nodes, func(z Size) float64 { return float64(z.Series) }), f.figureFor(c.Nodes, func(z Size) float64 { return float64(z.SeriesOfPool) })
		return math.Round(n + ofPool*n/most*float64(c.Pools-1))
	}
	n := 0.0
	for _, function := range Passes() {
		var points []point
		for _, p := range f.memory.Passes {
			if p.Function == function {
				points = append(points, point{p.Nodes, float64(p.Series)})
			}
		}
		n += interpolate(points, min(c.Nodes, mostInMemory))
	}
	if busy > 0.1 {
		n += reasonSeries
	}
	return math.Round(n) + otherSeries + poolSeries*float64(c.Pools)
}

// secondsOf returns the seconds that one tick of a function takes.
func (c Cluster) secondsOf(m Measured, s Stack, function string, busy float64) float64 {
	cpu := m.tick(s, function, c.Nodes, func(t Taken) float64 { return t.CPUSeconds })
	requests := m.tick(s, function, c.Nodes, func(t Taken) float64 { return float64(t.Requests) })
	rest := overNetwork + requests*eachRequest + (leastCPU+cpu)*max(1, cpuShare/float64(c.MemoryMiB))
	switch function {
	case "refresh":
		return rest - overNetwork + refreshWaits
	case "disrupt":
		return rest
	}
	return rest*(1-busy) + max(staySeconds, rest)*busy
}

// InVPC returns the lines that come on top for functions in a VPC: interface endpoints, or NAT that is there anyway,
// and answers of the API server from another zone.
func InVPC(s Stack, c Cluster, endpoints, subnets int) ([]Line, error) {
	m, err := readFigures()
	if err != nil {
		return nil, err
	}
	answers := 0.0
	for _, f := range Passes() {
		answers += s.TicksPerHour[f] * HoursPerMonth * m.tick(s, f, c.Nodes, func(t Taken) float64 { return float64(t.BytesRead) })
	}
	answers *= betweenZones / 1e9
	catalog := (s.TicksPerHour["refresh"] + 1.0/processHours) * HoursPerMonth * catalogReaders * catalogBytes / 1e9
	hours := float64(endpoints * subnets * HoursPerMonth)
	return []Line{
		{"interface endpoints", fmt.Sprintf("%d in %d subnets", endpoints, subnets), hours * PerEndpoint},
		{"NAT instead", fmt.Sprintf("%.0f GB of S3, if that has no gateway endpoint", catalog), catalog * PerGBNAT},
		{"answers of the API server between zones", fmt.Sprintf("%.0f GB", answers), answers * PerGBZone},
	}, nil
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
