package nodeclass_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
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
		{"the example of Karpenter's documentation", `{budgets: [{nodes: 20%, reasons: [Empty, Drifted]}, {nodes: "5"}, {nodes: "0", schedule: "@daily", duration: 10m, reasons: [Underutilized]}]}`, nil,
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Reasons: []string{"Empty", "Drifted"}, Nodes: "20%"}, {Every: true, Nodes: "5"},
				{Reasons: []string{"Underutilized"}, Nodes: "0", Schedule: "@daily", Duration: 10 * time.Minute}}}},
		{"saving nothing", `{consolidationPolicy: WhenEmpty}`, map[string]string{"joiner.sh/min-savings-usd": "0"},
			cluster.Disruption{Policy: "WhenEmpty"}},
		{"worth it", `{}`, map[string]string{"joiner.sh/min-savings-usd": "0.05", "joiner.sh/min-savings-percent": "10%"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", SavesUSD: 0.05, SavesPercent: 10}},
		{"an empty list of reasons is for none", `{budgets: [{nodes: "0", reasons: []}]}`, nil,
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Nodes: "0"}}}},
		{"reporting", `{}`, map[string]string{"joiner.sh/disruption": "report"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", ReportOnly: true}},
		{"expiration within budgets", `{budgets: [{nodes: 10%}]}`, map[string]string{"joiner.sh/expire": "within-budgets"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: always, ExpireGently: true}},
		{"spot to spot", `{budgets: [{nodes: 10%}]}`, map[string]string{"joiner.sh/spot-to-spot-consolidation": "false"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: always, SpotToSpot: new(bool)}},
		{"spot to spot, misspelt", `{budgets: [{nodes: 10%}]}`, map[string]string{"joiner.sh/spot-to-spot-consolidation": "no"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: always, ReportOnly: true,
				Message: `annotation joiner.sh/spot-to-spot-consolidation: "no" is neither true nor false`}},
		{"what cannot be understood reports only", `{budgets: [{nodes: "0", schedule: "0 9 * *", duration: 8h}]}`,
			map[string]string{"joiner.sh/disruption": "maybe", "joiner.sh/min-savings-usd": "-1", "joiner.sh/min-savings-percent": "NaN"},
			cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", ReportOnly: true,
				Budgets: []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "0 9 * *", Duration: 8 * time.Hour}},
				Message: `budget 1: schedule "0 9 * *": expected exactly 5 fields, found 4: [0 9 * *]; ` +
					`annotation joiner.sh/disruption: "maybe" is neither act nor report; ` +
					`annotation joiner.sh/min-savings-usd: "-1" is not a number from 0 to 1000000; ` +
					`annotation joiner.sh/min-savings-percent: "NaN" is not a number from 0 to 100%`}},
	} {
		p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: c.annotations}}
		if err := yaml.Unmarshal([]byte(c.spec), &p.Spec.Disruption); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, nodeclass.ReadDisruption(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Each slip is told on the pool in words that say what to do, and takes nothing but disruption from it.
func TestAPoolSaysWhatOfItsDisruptionCannotBe(t *testing.T) {
	for _, c := range []struct {
		name, spec  string
		annotations map[string]string
		want        string
	}{
		{"a day that never comes", `{budgets: [{nodes: "1"}, {nodes: "0", schedule: "0 0 31 2 *", duration: 8h}]}`, nil, `budget 2: schedule "0 0 31 2 *" never comes`},
		{"a schedule that is none", `{budgets: [{nodes: "0", schedule: "0 25 * * *", duration: 8h}]}`, nil, `budget 1: schedule "0 25 * * *": end of range (25) above maximum (23): 25`},
		{"an unknown zone", `{budgets: [{nodes: "0", schedule: "0 9 * * *", duration: 8h}]}`, map[string]string{"joiner.sh/time-zone": "Europe/Berlinn"},
			`budget 1: time zone "Europe/Berlinn" is not known: use an IANA name such as Europe/Berlin`},
		{"a zone and a schedule", `{budgets: [{nodes: "0", schedule: "0 0 30 2 *", duration: 8h}]}`, map[string]string{"joiner.sh/time-zone": "Mars"},
			`budget 1: time zone "Mars" is not known: use an IANA name such as Europe/Berlin; schedule "0 0 30 2 *" never comes`},
		{"an unknown zone that no budget needs", `{}`, map[string]string{"joiner.sh/time-zone": "CET+1"},
			`time zone "CET+1" is not known: use an IANA name such as Europe/Berlin`},
		{"no count", `{budgets: [{nodes: "many"}]}`, nil, `budget 1: nodes "many" is neither a count nor a percentage up to 100%`},
		{"a saving that nobody looks at", `{consolidationPolicy: WhenEmpty}`, map[string]string{"joiner.sh/min-savings-usd": "1"},
			"a least saving is asked for (joiner.sh/min-savings-usd, joiner.sh/min-savings-percent), and consolidationPolicy WhenEmpty never looks at prices: " +
				"take the annotation off, or change the policy"},
		{"a part in the place of an amount", `{}`, map[string]string{"joiner.sh/min-savings-usd": "5%"}, `annotation joiner.sh/min-savings-usd: "5%" is not a number from 0 to 1000000`},
		{"a saving of more than all", `{}`, map[string]string{"joiner.sh/min-savings-percent": "101%"}, `annotation joiner.sh/min-savings-percent: "101%" is not a number from 0 to 100%`},
		{"a zone that depends on where it is read", `{}`, map[string]string{"joiner.sh/time-zone": "Local"}, `time zone "Local" is not known: use an IANA name such as Europe/Berlin`},
		{"a saving, and never", `{consolidateAfter: Never}`, map[string]string{"joiner.sh/min-savings-percent": "5"},
			"a least saving is asked for (joiner.sh/min-savings-usd, joiner.sh/min-savings-percent), and consolidateAfter is Never: take the annotation off, or give a duration"},
		{"an unknown policy", `{consolidationPolicy: WhenBored}`, nil, `consolidationPolicy "WhenBored" is none of [WhenEmpty WhenEmptyOrUnderutilized Balanced]`},
		{"an unknown end", `{}`, map[string]string{"joiner.sh/expire": "gently"}, `annotation joiner.sh/expire: "gently" is neither force nor within-budgets`},
		{"expiration within a budget that is closed", `{budgets: [{nodes: 0%}]}`, map[string]string{"joiner.sh/expire": "within-budgets"},
			"annotation joiner.sh/expire asks for expiration within budgets, and a budget of 0 at all hours lets no node go for reason Drifted: " +
				"give that budget a schedule, another count or other reasons"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pool()
			p.Annotations = c.annotations
			if err := yaml.Unmarshal([]byte(c.spec), &p.Spec.Disruption); err != nil {
				t.Fatal(err)
			}
			nodeclass.UpdatePool(p, classes(), noon())
			k, _ := p.StatusConditions().Get(v1.ConditionDisruptionValid)
			waits := "no node is disrupted by choice until this is mended: "
			if c.annotations["joiner.sh/expire"] == "within-budgets" {
				waits = "no node is disrupted by choice, and none that expires is replaced, until this is mended: "
			}
			if want := waits + c.want; k.Status != "False" || k.Reason != "NodePoolValidationFailed" || k.Message != want {
				t.Errorf("got  %s %s: %s\nwant %s", k.Status, k.Reason, k.Message, want)
			}
			if !p.StatusConditions().IsTrue("Ready") {
				t.Error("the pool does not launch any more")
			}
			if d := nodeclass.ReadDisruption(p); !d.ReportOnly {
				t.Error("the pool is disrupted")
			}
			p.Annotations, p.Spec.Disruption = nil, v1.Disruption{}
			if nodeclass.UpdatePool(p, classes(), noon()); len(p.Status.Conditions) != 4 {
				t.Errorf("the condition stays when all is well: %v", p.Status.Conditions)
			}
		})
	}
	fixed, replicas := pool(), int64(2)
	fixed.Annotations = map[string]string{"joiner.sh/min-savings-usd": "1"}
	fixed.Spec.Replicas = &replicas
	if d := nodeclass.ReadDisruption(fixed); !strings.Contains(d.Message, "nodes of a pool with replicas are never consolidated") {
		t.Errorf("a least saving of a static pool: %q", d.Message)
	}
	gently := pool()
	gently.Annotations = map[string]string{"joiner.sh/expire": "within-budgets"}
	gently.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{v1.DisruptionEmpty}}}
	if d := nodeclass.ReadDisruption(gently); d.Message != "" {
		t.Errorf("a budget that is closed for another reason: %q", d.Message)
	}
	nights, hours := "@daily", v1.NewDuration(8*time.Hour)
	gently.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "0", Schedule: &nights, Duration: &hours}}
	if d := nodeclass.ReadDisruption(gently); d.Message != "" {
		t.Errorf("a budget that is closed at night: %q", d.Message)
	}
	never := pool()
	never.Annotations = map[string]string{"joiner.sh/expire": "within-budgets"}
	never.Spec.Template.Spec.ExpireAfter = v1.NeverAfter()
	if d := nodeclass.ReadDisruption(never); !strings.Contains(d.Message, "and expireAfter is Never") {
		t.Errorf("expiration within budgets without an expiration: %q", d.Message)
	}
}
