package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

func TestOverlay(t *testing.T) {
	half, seven := 0.5, int64(8)
	for _, c := range []struct {
		text string
		want cluster.Overlay
	}{
		{`{metadata: {name: a}, spec: {weight: 3, price: "0.5", requirements: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}, {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["7"]}]}}`,
			cluster.Overlay{Name: "a", Weight: 3, Price: &half, Requirements: requirements.NewSet(
				requirements.Of("kubernetes.io/arch", "arm64"), requirements.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Not: true, Min: &seven})}},
		{`{metadata: {name: b}, spec: {priceAdjustment: "-10.5%", requirements: []}}`, cluster.Overlay{Name: "b", Change: &cluster.PriceChange{Percent: -10.5}}},
		{`{metadata: {name: c}, spec: {priceAdjustment: "+.5", requirements: []}}`, cluster.Overlay{Name: "c", Change: &cluster.PriceChange{USD: 0.5}}},
		{`{metadata: {name: d}, spec: {capacity: {x/b: 1k, x/a: 0}, requirements: []}}`,
			cluster.Overlay{Name: "d", Capacity: []resources.Extended{{Name: "x/a"}, {Name: "x/b", Count: 1000}}}},
		{`{metadata: {name: e, deletionTimestamp: "2026-03-01T12:00:00Z"}, spec: {requirements: [{key: "a b", operator: Exists}, {key: x, operator: Near}]}}`,
			cluster.Overlay{Name: "e", Requirements: requirements.NewSet(requirements.Any("a b")),
				Message: `requirement key "a b" is no label key; it is being deleted; requirement x: unknown operator "Near", use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte`}},
	} {
		if diff := cmp.Diff(c.want, Overlay(read[v1alpha1.NodeOverlay](t, c.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

// An overlay that says too much, or what no instance costs, says so and is not applied.
func TestAnOverlayThatSaysTooMuch(t *testing.T) {
	many := func(n int, format string) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(format, i))
		}
		return strings.Join(out, ",")
	}
	for text, want := range map[string]string{
		`{requirements: [{key: a, operator: In, values: [` + many(1000, "v%d") + `]}]}`:                                      "",
		`{requirements: [{key: a, operator: In, values: [` + many(1000, "v%d") + `]}, {key: b, operator: In, values: [x]}]}`: "its requirements have 1001 values, more than 1000",
		`{requirements: [], capacity: {` + many(32, "a.b/%d: 1") + `}}`:                                                      "",
		`{requirements: [], capacity: {` + many(33, "a.b/%d: 1") + `}}`:                                                      "it gives nodes 33 resources, more than 32",
		`{requirements: [], price: "10000"}`:                                                                                 "",
		`{requirements: [], price: "10001"}`:                                                                                 `price "10001" is not from 0 to 10000 USD per hour`,
		`{requirements: [], price: "NaN"}`:                                                                                   `price "NaN" is not from 0 to 10000 USD per hour`,
		`{requirements: [], priceAdjustment: "-Inf"}`:                                                                        `priceAdjustment "-Inf" is no amount`,
		`{requirements: [{key: a, operator: In, values: ["` + strings.Repeat("x", 90) + `"]}]}`:                              `requirement a has a value that no label can have: "` + strings.Repeat("x", 80) + `"`,
	} {
		got := Overlay(read[v1alpha1.NodeOverlay](t, "{metadata: {name: o}, spec: "+text+"}"))
		if got.Message != want || want != "" && strings.HasPrefix(want, "it") && len(got.Requirements.All())+len(got.Capacity) > 0 {
			t.Errorf("%.120s: %q, want %q", text, got.Message, want)
		}
	}
}
