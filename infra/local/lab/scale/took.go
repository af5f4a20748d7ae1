package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"joiner.sh/pkg/cli/bill"
)

// logMeter passes the functions' log lines on and counts their bytes, and the CloudWatch metrics that become of them.
type logMeter struct {
	out io.Writer

	mu     sync.Mutex
	bytes  map[string]int  // by function, Lambda's own lines among them
	series map[string]bool // since the beginning
}

func newLogMeter(out io.Writer) *logMeter {
	return &logMeter{out: out, bytes: map[string]int{}, series: map[string]bool{}}
}

// Write gets whole lines of the form "function request | text".
func (l *logMeter) Write(b []byte) (int, error) {
	l.mu.Lock()
	for line := range bytes.Lines(b) {
		source, text, ok := bytes.Cut(line, []byte(" | "))
		name, _, named := strings.Cut(string(source), " ")
		if !ok || !named {
			continue
		}
		l.bytes[name] += len(text)
		for _, s := range seriesOf(text) {
			l.series[s] = true
		}
	}
	l.mu.Unlock()
	return l.out.Write(b)
}

// takeBytes gives the bytes since it was asked last.
func (l *logMeter) takeBytes() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.bytes
	l.bytes = map[string]int{}
	return out
}

// countMetrics is how many metrics there were so far that have the text in their name and dimensions.
func (l *logMeter) countMetrics(with string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.series {
		if strings.Contains(s, with) {
			n++
		}
	}
	return n
}

// seriesOf are the metrics that CloudWatch makes of a log line in its embedded metric format: one for each name and
// each combination of dimensions.
func seriesOf(text []byte) (out []string) {
	if !bytes.Contains(text, []byte(`"_aws"`)) {
		return nil
	}
	var values map[string]any
	var about struct {
		AWS struct {
			CloudWatchMetrics []struct {
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	if json.Unmarshal(text, &values) != nil || json.Unmarshal(text, &about) != nil {
		return nil
	}
	for _, d := range about.AWS.CloudWatchMetrics {
		for _, dimensions := range d.Dimensions {
			by := ""
			for _, name := range dimensions {
				by += fmt.Sprintf(" %s=%v", name, values[name])
			}
			for _, m := range d.Metrics {
				out = append(out, m.Name+by)
			}
		}
	}
	return out
}

// forBill is what the bill counts with, of the sizes that were measured as a whole: ticks at rest under heartbeats, and
// those that begin in a new process.
func forBill(all []size) bill.Measured {
	m := bill.Measured{How: "`make scale`, which runs the functions' binaries in the local environment under Lambda's limits"}
	for _, s := range all {
		if s.CutShort != "" {
			continue // it lacks metrics of what was not measured
		}
		one := bill.Size{Nodes: s.Nodes, Pods: s.Pods, SeriesAtRest: s.SeriesAtRest, Series: s.Series,
			SeriesOfPool: s.SeriesOfPool,
			Functions:    map[string]bill.Ticks{}}
		for _, r := range s.Rows {
			t := one.Functions[r.Function]
			switch {
			case r.Case == heartbeats:
				t.Warm = r.toTaken()
			case r.Case == idleCold || r.Case == foreign:
				t.Cold = r.toTaken()
			default:
				continue
			}
			one.Functions[r.Function] = t
		}
		m.Sizes = append(m.Sizes, one)
	}
	return m
}

// toTaken is the row as the bill has it.
func (r row) toTaken() bill.Taken {
	c := r.Traffic.sumTraffic()
	return bill.Taken{CPUSeconds: r.CPU, Requests: c.Requests, BytesRead: c.Bytes, LogBytes: r.LogBytes,
		S3Gets: r.Calls["s3:GetObject"], S3Puts: r.Calls["s3:PutObject"]}
}
