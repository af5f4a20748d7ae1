package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli/bill"
)

// The bill counts with what stands in infra/lab/bench/scale.json; `make scale SCALE_FLAGS=-write` makes it so.
func TestTheBillCountsWithWhatWasMeasured(t *testing.T) {
	all, err := files{data: "../../../lab/bench/scale.json"}.readSizes()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../../pkg/cli/bill/invocations.json")
	var kept bill.Measured
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(forBill(all), kept); diff != "" {
		t.Errorf("(-measured +bill):\n%s", diff)
	}
	for _, s := range kept.Sizes {
		for _, f := range scheduledFunctions() {
			if ticks := s.Functions[f]; ticks.Warm.Requests == 0 || ticks.Cold.Requests == 0 {
				t.Errorf("%d nodes: %s was not measured: %+v", s.Nodes, f, ticks)
			}
		}
	}
}

// Bytes count for the function that wrote them, and each metric once, however often it is written.
func TestLogLinesAreCounted(t *testing.T) {
	l := newLogMeter(io.Discard)
	const metric = `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"Joiner","Dimensions":[["cluster","nodepool"]],` +
		`"Metrics":[{"Name":"a"},{"Name":"b"}]}]},"cluster":"demo","nodepool":"%","a":1,"b":2}`
	lines := []string{
		"provision        12345678 | START RequestId: 1\n",
		"lifecycle        12345678 | " + metric + "\n",
		"lifecycle        12345679 | " + metric + "\n",
		"a line of somebody else\n",
	}
	for _, line := range lines {
		if _, err := io.WriteString(l, line); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"provision": len("START RequestId: 1\n"), "lifecycle": 2 * (len(metric) + 1)}
	if diff := cmp.Diff(want, l.takeBytes()); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	if got := []int{l.countMetrics(""), l.countMetrics(" nodepool="), l.countMetrics("no such"), len(l.takeBytes())}; !slices.Equal(got, []int{2, 2, 0, 0}) {
		t.Errorf("metrics, those of a pool, others, bytes later: %v", got)
	}
}
