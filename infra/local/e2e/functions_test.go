package e2e_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/events"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
	"joiner.sh/pkg/testing/shortrun"
)

// TestWhatFunctionsNeed starts every function anew a few times and says how long that takes and how much memory it
// uses, for the table of infra/lab/bench/measurements.md. What it holds against the figures is coarse: the machine may be busy.
func TestWhatFunctionsNeed(t *testing.T) {
	shortrun.Skip(t)
	const times, mostInit = 5, 2 * time.Second
	w := start(t, func(o *env.Options) { o.Push, o.Env["WATCH_DURATION"] = true, "0s" })
	w.ready()
	for _, f := range w.Assembly.Functions {
		for range times {
			if _, err := w.Host.KillFunction(f.Name); err != nil {
				t.Fatal(err)
			}
			w.once(strings.TrimPrefix(f.Name, "joiner-demo-"))
		}
		s := w.Host.CurrentStats().Functions[f.Name]
		if len(s.Init) == 0 {
			t.Fatalf("%s never started", f.Name)
		}
		best := slices.Min(s.Init)
		t.Logf("%-24s init %4d ms, memory %3d of %d MB", strings.TrimPrefix(f.Name, "joiner-demo-"), best.Milliseconds(), s.MaxMemoryMB, f.MemoryMB)
		if best > mostInit || s.MaxMemoryMB*10 > f.MemoryMB*9 {
			t.Errorf("%s: init %s, memory %d of %d MB: too much", f.Name, best, s.MaxMemoryMB, f.MemoryMB)
		}
	}
}

// once has a function do something, as whoever calls it does.
func (w *world) once(function string) {
	w.t.Helper()
	kinds := map[string]events.Kind{"spotinterruption": events.KindSpotInterruption, "reservationinterruption": events.KindReservationInterruption,
		"rebalance": events.KindRebalance, "scheduledchange": events.KindScheduledChange, "statechange": events.KindStateChange}
	var payload []byte
	switch kind, ok := kinds[function]; {
	case function == "preflight":
		if a, err := w.RequestResource(w.ctx, "Update", "Custom::JoinerPreflight", nil); err != nil || a.Status != "SUCCESS" {
			w.t.Fatalf("preflight: %+v, %v", a, err)
		}
		return
	case function == "setup":
		if a, err := w.RequestResource(w.ctx, "Update", setupType, nil); err != nil || a.Status != "SUCCESS" {
			w.t.Fatalf("setup: %+v, %v", a, err)
		}
		return
	case function == "wake":
		w.knock()
		return
	case ok:
		sample, err := kind.Sample()
		if err != nil {
			w.t.Fatal(err)
		}
		payload = sample
		if function == "statechange" { // which is handed batches of a queue
			if payload, err = json.Marshal(map[string]any{"Records": []map[string]string{{"messageId": "1", "body": string(sample)}}}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for {
		res, err := w.Host.InvokeFunction(w.ctx, w.FunctionName(function), lambdahost.RequestResponse, payload)
		switch busy, throttled := errors.AsType[*lambdahost.Error](err); {
		case throttled && busy.Status == http.StatusTooManyRequests, strings.Contains(string(res.Payload), "signal: killed"):
			w.rest() // somebody else runs it, or the process was still ending that was killed
			continue
		case err != nil || res.FunctionError != "":
			w.t.Fatalf("%s: %v %s", function, err, res.Payload)
		}
		return
	}
}

// knock calls the URL of wake as the API server does.
func (w *world) knock() {
	w.t.Helper()
	address, ca := w.Host.URL(w.FunctionName("wake"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	path := w.Assembly.FindFunction(w.FunctionName("wake")).Environment["PUSH_PATH"] + "/pods"
	res, err := c.Post(address+path, "application/json", bytes.NewReader([]byte(`{"request":{"uid":"1"}}`)))
	if err != nil {
		w.t.Fatal(err)
	}
	// which a process is that is still ending
	if _ = res.Body.Close(); res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadGateway {
		w.t.Fatalf("wake answers %d", res.StatusCode)
	}
}
