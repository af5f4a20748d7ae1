package prometheus_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"

	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/providers/prometheus"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// TestPrometheusTakesWhatIsSent in version 2 of the protocol and, where it knows no other, in version 1: values, labels,
// and the end of a series at once rather than after five minutes.
func TestPrometheusTakesWhatIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		versions []remote.WriteMessageType
		requests int64 // for four sends, of which one ends a series as well
	}{
		"both":      {[]remote.WriteMessageType{remote.WriteV1MessageType, remote.WriteV2MessageType}, 5},
		"version 2": {[]remote.WriteMessageType{remote.WriteV2MessageType}, 5},
		"version 1": {[]remote.WriteMessageType{remote.WriteV1MessageType}, 6}, // version 2 is tried once
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, c.versions...)
			w := &prometheus.Writer{URL: s.URL + "/api/v1/write", Labels: map[string]string{"cluster": "demo"}}
			age := func(node string, value float64) timeseries.Series {
				const family = "karpenter_nodes_current_lifetime_seconds"
				return timeseries.Series{Name: family, Family: family, Labels: []timeseries.Label{{Name: "node_name", Value: node}}, Value: value}
			}
			send := func(minute int, series, ended []timeseries.Series) {
				t.Helper()
				if err := w.WriteSeries(t.Context(), series, ended, noon().Add(time.Duration(minute)*time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			value := func(node string, minute int) float64 {
				t.Helper()
				got := s.query(t, `karpenter_nodes_current_lifetime_seconds{cluster="demo",node_name="`+node+`"}`, noon().Add(time.Duration(minute)*time.Minute))
				if len(got) == 0 {
					return -1 // there is none
				}
				return got[0].F
			}
			send(0, []timeseries.Series{age("a", 60), age("b", 30)}, nil)
			send(1, []timeseries.Series{age("a", 120)}, []timeseries.Series{age("b", 0)})
			if a, b, gone := value("a", 1), value("b", 0), value("b", 1); a != 120 || b != 30 || gone != -1 {
				t.Errorf("a is %v, want 120; b was %v, want 30, and is %v, want none", a, b, gone)
			}
			send(2, []timeseries.Series{age("a", 180)}, nil)
			send(2, []timeseries.Series{age("a", 180)}, nil) // again, as after a lost reply
			if a := value("a", 2); a != 180 {
				t.Errorf("a is %v, want 180", a)
			}
			if got := s.requests.Load(); got != c.requests {
				t.Errorf("%d requests for four sends, want %d", got, c.requests)
			}
		})
	}
}
