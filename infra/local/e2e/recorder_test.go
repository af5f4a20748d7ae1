package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/lab/alarms"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
)

// recorder runs a world minute by minute and keeps what CloudWatch would be told: what the functions write in its
// embedded format, and what Lambda, SQS and EventBridge count. A minute lasts as long as what it fires needs.
type recorder struct {
	*world
	minute int
	every  map[string]int // minutes between two ticks, by schedule
	seen   lambdahost.Stats
	read   int // bytes of the log
	out    alarms.Recording
}

// record brings up a world for a recording. Functions leave when nothing is to be done, and a minute of Lambda's waits
// is short.
func record(t *testing.T, change ...func(*env.Options)) *recorder {
	t.Helper()
	w := start(t, append([]func(*env.Options){func(o *env.Options) {
		o.Minute, o.Env["WATCH_DURATION"], o.Env["BATCH_IDLE_DURATION"] = time.Second, "0s", "0s"
		delete(o.Env, "DISRUPTION")
	}}, change...)...)
	r := &recorder{world: w, every: map[string]int{}, out: alarms.Recording{Numbers: alarms.Numbers{}}}
	for _, s := range w.Assembly.Schedules {
		if _, err := fmt.Sscanf(s.Expression, "rate(%d minute", new(int)); err != nil {
			t.Fatalf("schedule %s: %v", s.Expression, err)
		}
		var n int
		_, _ = fmt.Sscanf(s.Expression, "rate(%d", &n)
		r.every[s.Name] = n
	}
	return r
}

// begin forgets what the preparations of a test did.
func (r *recorder) begin() {
	r.t.Helper()
	r.settled()
	r.seen, r.read = r.Host.CurrentStats(), len(r.logs.String())
}

// pass lets so many minutes pass.
func (r *recorder) pass(minutes int) {
	r.t.Helper()
	for range minutes {
		for _, name := range slices.Sorted(maps.Keys(r.every)) {
			if r.minute%r.every[name] != 0 {
				continue
			}
			if _, err := r.Host.FireSchedule(name); err != nil {
				r.t.Fatal(err)
			}
			r.settled() // ticks of one minute do not come at the same moment
		}
		r.look()
	}
}

// look puts what happened since the last look into the present minute, and begins the next one.
func (r *recorder) look() {
	r.t.Helper()
	now := r.Host.CurrentStats()
	for _, f := range r.Assembly.Functions {
		before, after := r.seen.Functions[f.Name], now.Functions[f.Name]
		dropped := 0
		for _, l := range after.DeadLetters[len(before.DeadLetters):] {
			if !r.isFed(f.ARN) && l.RequestID != "" {
				dropped++
			}
		}
		ran := after.Invocations - before.Invocations
		for metric, n := range map[string]int{"Invocations": ran, "Errors": after.Errors - before.Errors, "Throttles": after.Throttles - before.Throttles,
			"AsyncEventsDropped": dropped} {
			if n > 0 || ran > 0 && metric == "Errors" { // Lambda says that there was none
				r.put(fmt.Sprintf("AWS/Lambda %s{Name=FunctionName, Value=%s}", metric, plainID(f.LogicalID)), float64(n))
			}
		}
	}
	for _, q := range r.Assembly.Queues {
		r.put(fmt.Sprintf("AWS/SQS ApproximateNumberOfMessagesVisible{Name=QueueName, Value=${%s.QueueName}}", plainID(q.LogicalID)),
			float64(len(r.Cloud.QueuedMessages(q.Name))))
	}
	failed := map[string]int{}
	for _, u := range now.Undelivered[len(r.seen.Undelivered):] {
		if u.QueueARN == "" { // those that a dead-letter queue has are counted apart
			failed[u.Rule]++
		}
	}
	for _, rule := range r.Assembly.Rules {
		if n := failed[rule.Name]; n > 0 {
			r.put(fmt.Sprintf("AWS/Events FailedInvocations{Name=RuleName, Value=%s}", plainID(rule.LogicalID)), float64(n))
		}
	}
	r.readLog()
	r.seen = now
	r.minute++
}

// isFed reports whether Lambda takes the function's events from a queue, and has none of its own to drop.
func (r *recorder) isFed(functionARN string) bool {
	for _, m := range r.Assembly.Mappings {
		if f := r.Assembly.FindFunction(m.FunctionARN); f != nil && f.ARN == functionARN {
			return true
		}
	}
	return false
}

// plainID is a logical id without the hash that CDK adds.
func plainID(id string) string {
	return regexp.MustCompile(`[0-9A-F]{8}$`).ReplaceAllString(id, "")
}

func (r *recorder) put(series string, value float64) { r.out.PutMinute(series, r.minute, value) }

// readLog takes the metrics without a dimension but the cluster out of the log: of what is counted the sum, of what is
// measured the most.
func (r *recorder) readLog() {
	r.t.Helper()
	log := r.logs.String()
	values := map[string]float64{}
	for line := range strings.Lines(log[r.read:]) {
		_, text, _ := strings.Cut(line, " | ")
		if !strings.HasPrefix(text, `{"_aws"`) {
			continue
		}
		var said map[string]json.RawMessage
		var head struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			r.t.Fatalf("read %s: %v", text, err)
		}
		if err := json.Unmarshal(said["_aws"], &head); err != nil {
			r.t.Fatalf("read %s: %v", text, err)
		}
		for _, d := range head.CloudWatchMetrics {
			if fmt.Sprint(d.Dimensions) != "[[cluster]]" {
				continue
			}
			for _, m := range d.Metrics {
				addNumbers(values, fmt.Sprintf("%s %s{Name=cluster, Value=%s}", d.Namespace, m.Name, env.ClusterName), said[m.Name])
			}
		}
	}
	for series, v := range values {
		r.put(series, v)
	}
	r.read = len(log)
}

func addNumbers(values map[string]float64, series string, raw json.RawMessage) {
	var all []float64
	if json.Unmarshal(raw, &all) != nil {
		all = make([]float64, 1)
		_ = json.Unmarshal(raw, &all[0]) // one that is none counts as 0
	}
	for _, v := range all {
		if before, ok := values[series]; ok && !strings.Contains(series, "_total{") {
			v = max(v, before)
		} else {
			v += before
		}
		values[series] = v
	}
}

// fault has something go wrong for so many minutes, and lets more of them pass before the next one.
func (r *recorder) fault(name string, minutes, after int, begin func() (end func()), alarmsOfIt ...string) {
	r.t.Helper()
	from := r.minute
	end := begin()
	r.pass(minutes)
	r.out.Faults = append(r.out.Faults, alarms.Fault{From: from, Until: r.minute, Name: name, Alarms: alarmsOfIt})
	if end != nil {
		end()
	}
	r.pass(after)
}

// save writes the recording into the folder that the flag names.
func (r *recorder) save(name string) {
	r.t.Helper()
	r.out.Minutes = r.minute
	f, err := os.Create(filepath.Join(*recordings, name+".txt"))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := alarms.WriteRecording(f, r.out); err != nil {
		r.t.Error(err)
	}
	if err := f.Close(); err != nil {
		r.t.Error(err)
	}
}
