package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/controls"
	"joiner.sh/pkg/model/metrics"
)

const hostileText = "web\n{\"level\":\"INFO\",\"msg\":\"all is fine\"}\r\x1b[2J\x1b]0;PWNED\a\u202e\u2028\u009b\x7f\x00\U000e0041\u200b\xff\"}"

// Whatever is in a line of the log: it is one JSON object on one line, says what it was told, and steers no terminal.
func TestLogLinesAreJSON(t *testing.T) {
	var b bytes.Buffer
	log := newLog("DEBUG", &b)
	type object struct {
		Name string
		Of   map[string]string
	}
	log.Info(hostileText, hostileText, hostileText, "error", errors.New(hostileText), "list", []string{hostileText},
		"object", object{hostileText, map[string]string{hostileText: hostileText}},
		slog.Group(hostileText, hostileText, []byte(hostileText)), "channel", make(chan int), "raw", json.RawMessage(`{"a":`+"\n"+`1}`))
	log.With(hostileText, 1).WithGroup(hostileText).Warn("x", "y", time.Unix(0, 0))
	measured := emfWriter{out: controls.JSONLines{To: &b}, cluster: hostileText, now: time.Now, log: log}
	measured.Put(metrics.Record{By: []metrics.Tag{{Key: hostileText, Value: hostileText}},
		Values: []metrics.Value{metrics.Gauge(hostileText, 1)}})
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) < 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		var o map[string]any
		if err := json.Unmarshal([]byte(l), &o); err != nil {
			t.Errorf("%v: %q", err, l)
		}
		if i := strings.IndexFunc(l, controls.Steers); i >= 0 {
			t.Errorf("a control at %d of %q", i, l)
		}
	}
	var first map[string]any
	_ = json.Unmarshal([]byte(lines[0]), &first)
	if want := strings.ToValidUTF8(hostileText, "\ufffd"); first["msg"] != want {
		t.Errorf("message %q, want %q", first["msg"], want)
	}
}
