package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

func TestDisruptionOfAPool(t *testing.T) {
	always := []cluster.NodeBudget{{Every: true, Nodes: "10%"}}
	for _, c := range []struct {
		name, spec  string
		annotations map[string]string
		want        cluster.Disruption
	}{
		{"as the API server fills it in", `{consolidateAfter: 0s, budgets: [{nodes: 10%}]}`, nil,
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: always}},
		{"never", `{consolidateAfter: Never, consolidationPolicy: WhenEmpty, budgets: [{nodes: 10%}]}`, nil,
			cluster.Disruption{Policy: "WhenEmpty", Never: true, Budgets: always}},
		{"with hours", `{consolidateAfter: 5m, budgets: [{nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h, reasons: [Drifted]}]}`,
			map[string]string{"joiner.sh/time-zone": "Europe/Berlin"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", After: 5 * time.Minute, TimeZone: "Europe/Berlin", Budgets: []cluster.NodeBudget{
				{Reasons: []string{"Drifted"}, Nodes: "0", Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour}}}},
		{"worth it", `{}`, map[string]string{"joiner.sh/min-savings-usd": "0.05", "joiner.sh/min-savings-percent": "10%"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", SavesUSD: 0.05, SavesPercent: 10}},
		{"reporting", `{}`, map[string]string{"joiner.sh/disruption": "report"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", ReportOnly: true}},
		{"what cannot be understood reports only", `{budgets: [{nodes: "0", schedule: "0 9 * *", duration: 8h}]}`,
			map[string]string{"joiner.sh/disruption": "maybe", "joiner.sh/min-savings-usd": "-1", "joiner.sh/min-savings-percent": "NaN"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", ReportOnly: true,
				Budgets: []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "0 9 * *", Duration: 8 * time.Hour}},
				Message: `budget 1: schedule "0 9 * *": expected exactly 5 fields, found 4: [0 9 * *]; ` +
					`annotation joiner.sh/disruption: "maybe" is neither act nor report; ` +
					`annotation joiner.sh/min-savings-usd: "-1" is not a number from 0 up; ` +
					`annotation joiner.sh/min-savings-percent: "NaN" is not a number from 0 up`}},
	} {
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: c.annotations}}
		if err := yaml.Unmarshal([]byte(c.spec), &p.Spec.Disruption); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, disruptionFrom(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
