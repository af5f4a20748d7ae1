package lambdahost

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A chain of invocations is counted by function in the trace header that each gets, and is stopped when one function
// would run in it for the 17th time.
func TestAChainOfInvocationsIsCountedAndStopped(t *testing.T) {
	h, _ := startHost(t, nil)
	const name = "joiner-demo-probe"
	trace := "Root=1-00000000-abc;Lineage=joiner-demo-single:2"
	for run := 1; run <= mostRecursion; run++ {
		res, err := h.InvokeFunction(WithTrace(t.Context(), trace), name, RequestResponse, []byte(`{"do":"env"}`))
		if err != nil || res.FunctionError != "" {
			t.Fatalf("run %d: %v %s", run, err, res.Payload)
		}
		want := fmt.Sprintf("Lineage=%s:%d|joiner-demo-single:2", name, run)
		if !strings.Contains(string(res.Payload), want) {
			t.Fatalf("run %d does not know %q: %s", run, want, res.Payload)
		}
		_, trace, _ = strings.Cut(string(res.Payload), "_X_AMZN_TRACE_ID=")
		trace, _, _ = strings.Cut(trace, `"`)
	}
	for _, kind := range []string{RequestResponse, Event} {
		_, err := h.InvokeFunction(WithTrace(t.Context(), trace), name, kind, nil)
		if refused, ok := errors.AsType[*Error](err); !ok || refused.Code != "RecursiveInvocationException" {
			t.Errorf("%s: a chain of 17 gives %v", kind, err)
		}
	}
	if s := h.CurrentStats().Functions[name]; s.LongestChain != mostRecursion || s.Recursions != 2 || s.Invocations != mostRecursion {
		t.Errorf("stats %+v", s)
	}
	const may = "joiner-demo-single" // RecursiveLoop of its template is Allow
	for _, n := range []int{2, mostRecursion} {
		if _, err := h.InvokeFunction(WithTrace(t.Context(), fmt.Sprintf("Lineage=%s:16|%s:%d", name, may, n)), may, RequestResponse, nil); err != nil {
			t.Errorf("another function, which has run %d times in the chain: %v", n, err)
		}
	}
}

// What begins outside begins a chain, and damaged headers tell of none.
func TestReadLineage(t *testing.T) {
	for _, header := range []string{"", "Root=1;Sampled=0", "Lineage=", "Lineage=a", "Lineage=:3", "Lineage=a:many"} {
		if got := readLineage(WithTrace(t.Context(), header)); len(got) != 0 {
			t.Errorf("%q: %v", header, got)
		}
	}
	if got := readLineage(t.Context()).withRun("a").headerPart(); got != "Lineage=a:1" {
		t.Errorf("the first of a chain: %q", got)
	}
}
