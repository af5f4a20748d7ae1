package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/metrics"
)

func TestMetricsAreWrittenAsLines(t *testing.T) {
	var out, log bytes.Buffer
	m := &emfWriter{out: &out, cluster: "demo", now: time.Now, log: slog.New(slog.NewTextHandler(&log, nil))}
	m.Put(metrics.Record{Values: []metrics.Value{metrics.Total("a", 1)}}, metrics.Record{Values: []metrics.Value{metrics.Total("a", 1), metrics.Total("a", 1)}},
		metrics.Record{Values: []metrics.Value{metrics.Gauge("b", 0.5)}})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], `"a":1,"cluster":"demo"}`) || !strings.HasSuffix(lines[1], `"b":0.5,"cluster":"demo"}`) {
		t.Errorf("wrote\n%s", out.String())
	}
	if !strings.Contains(log.String(), "metrics are lost") {
		t.Errorf("a record that cannot be written is not in the log: %s", log.String())
	}
}
