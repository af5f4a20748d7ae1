package lambdahost

import (
	"sync"
	"testing"
	"time"
)

// A function that takes more than its 256 MB ends as in Lambda; the next invocation has a new process.
func TestAFunctionThatOutgrowsItsMemoryIsKilled(t *testing.T) {
	h, _, said := startConfined(t)
	wantFault(t, invoked(t, h, `{"do":"grow","milli":4000}`), "Runtime.ExitError", "Runtime exited with error: signal: killed")
	invoked(t, h, `{}`)
	got := said()
	if len(got) != 2 || got[0].Status != "error" || got[0].Error == "" || got[1].Status != "" || !got[1].Cold {
		t.Errorf("reports = %+v", got)
	}
}

func TestReportsSayWhatAnInvocationTook(t *testing.T) {
	h, _, said := startConfined(t)
	invoked(t, h, `{"do":"grow","milli":100}`)
	invoked(t, h, `{}`)
	invoked(t, h, `{"do":"spin","milli":1000}`)
	got := said()
	if len(got) != 3 {
		t.Fatalf("reports = %+v", got)
	}
	if !got[0].Cold || got[0].Init == 0 || got[0].PeakMB < 100 || got[1].Cold || got[1].Init != 0 {
		t.Errorf("reports = %+v", got)
	}
	// 256 MB come with 0.145 of a processor: of 1,000 ms of work the process gets about 145.
	if got[2].CPU == 0 || got[2].CPU > 400*time.Millisecond || got[2].Took < time.Second {
		t.Errorf("a second's loop took %v of CPU in %v", got[2].CPU, got[2].Took)
	}
}

// startConfined starts a host that confines, and gives what it reports.
func startConfined(t *testing.T) (*Host, *cloud, func() []Report) {
	t.Helper()
	var mu sync.Mutex
	var all []Report
	h, c := startHost(t, func(o *Options) {
		o.Confine = true
		o.OnReport = func(r Report) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		}
	})
	if h.Confined == "" {
		t.Fatal("nothing is confined")
	}
	return h, c, func() []Report {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func invoked(t *testing.T, h *Host, event string) Result {
	t.Helper()
	r, err := h.InvokeFunction(t.Context(), "joiner-demo-probe", RequestResponse, []byte(event))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
