package prometheus_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/promql/parser"

	"joiner.sh/pkg/model/timeseries"
)

func bothVersions() []remote.WriteMessageType {
	return []remote.WriteMessageType{remote.WriteV1MessageType, remote.WriteV2MessageType}
}

// target is a query of a panel.
type target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// panels are what the tests read of Grafana's format, in which panels of rows may be nested.
type panels struct {
	Title   string   `json:"title"`
	Targets []target `json:"targets"`
	Panels  []panels `json:"panels"`
}

// each calls f for every query.
func (p panels) each(f func(title string, t target)) {
	for _, t := range p.Targets {
		f(p.Title, t)
	}
	for _, inner := range p.Panels {
		inner.each(f)
	}
}

func readDashboard(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../stack/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// putIn replaces the variables of the dashboard by what Grafana puts in for "All".
func putIn(expression string) string {
	return strings.NewReplacer("$cluster", ".*", "$nodepool", ".*", "$__rate_interval", "30m", "$__range", "1h").Replace(expression)
}

// TestDashboardsShowData plays an hour and asks what our dashboard, Karpenter's, and alerts ask.
func TestDashboardsShowData(t *testing.T) {
	s := newServer(t, bothVersions()...)
	r := record(t, s)
	text, err := os.ReadFile("testdata/karpenter-dashboards.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		expression, missing, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if got := s.answers(t, expression, r.times...); got == (missing != "") {
			t.Errorf("%s: answered %t, where the list says %q", expression, got, missing)
		}
	}
	var ours panels
	if err := json.Unmarshal(readDashboard(t), &ours); err != nil {
		t.Fatal(err)
	}
	asked := 0
	ours.each(func(title string, q target) {
		if asked++; !s.answers(t, putIn(q.Expr), r.times...) {
			t.Errorf("panel %s: no answer to %s", title, q.Expr)
		}
	})
	if asked < 20 {
		t.Errorf("the dashboard asks %d questions", asked)
	}
}

// mustFit fails the test for what does not fit Grafana's schema, of which it is told as an empty list of errors.
func mustFit(t *testing.T, what string, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if wrong, ok := errors.AsType[cog.BuildErrors](err); err != nil && (!ok || len(wrong) > 0) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTheDashboardIsGrafanas: it fits Grafana's schema strictly, and names only metrics that are sent.
func TestTheDashboardIsGrafanas(t *testing.T) {
	var d dashboard.Dashboard //nolint:staticcheck // the model of the JSON that Grafana imports from a file
	mustFit(t, "the dashboard", d.UnmarshalJSONStrict(readDashboard(t)), d.Validate())
	var raw struct{ Panels []json.RawMessage }
	if err := json.Unmarshal(readDashboard(t), &raw); err != nil {
		t.Fatal(err)
	}
	ids := map[uint32]bool{}
	for _, text := range raw.Panels {
		var p dashboard.Panel
		var row dashboard.RowPanel
		if strings.Contains(string(text), `"type": "row"`) {
			mustFit(t, "a row", row.UnmarshalJSONStrict(text), row.Validate())
			p.Id, p.GridPos = &row.Id, row.GridPos
		} else {
			mustFit(t, "a panel", p.UnmarshalJSONStrict(text), p.Validate())
		}
		if p.Id == nil || ids[*p.Id] || p.GridPos == nil {
			t.Fatalf("a panel has no place or no number of its own: %s", text)
		}
		ids[*p.Id] = true
	}
	var ours panels
	if err := json.Unmarshal(readDashboard(t), &ours); err != nil {
		t.Fatal(err)
	}
	ours.each(func(title string, q target) {
		e, err := parser.ParseExpr(putIn(q.Expr))
		if err != nil {
			t.Errorf("panel %s: %v", title, err)
			return
		}
		for _, matchers := range parser.ExtractSelectors(e) {
			for _, m := range matchers {
				name := m.Value
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					if f, known := timeseries.FindFamily(strings.TrimSuffix(name, suffix)); known && f.Kind == timeseries.Histogram {
						name = f.Name
					}
				}
				if _, known := timeseries.FindFamily(name); m.Name == "__name__" && !known {
					t.Errorf("panel %s: nothing is sent as %s", title, m.Value)
				}
			}
		}
	})
}
