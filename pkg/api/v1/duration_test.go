package v1

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestDurationsKeepTheUsersText(t *testing.T) {
	for _, text := range []string{
		`{"terminationGracePeriod":"24h","expireAfter":"1h60m"}`,
		`{"terminationGracePeriod":"90m","expireAfter":"Never"}`,
		`{"terminationGracePeriod":"0s","expireAfter":"0s"}`,
	} {
		spec := `{"requirements":null,"nodeClassRef":null,` + text[1:]
		var s NodeClaimTemplateSpec
		if err := json.Unmarshal([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(s.DeepCopy())
		if err != nil || string(got) != spec {
			t.Errorf("%s came back as %s, error %v", spec, got, err)
		}
	}
}

func TestDurationValues(t *testing.T) {
	var s NodeClaimTemplateSpec
	if err := json.Unmarshal([]byte(`{"terminationGracePeriod":"1h30m","expireAfter":"720h"}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.TerminationGracePeriod.Duration != 90*time.Minute || *s.ExpireAfter.Duration != 720*time.Hour {
		t.Errorf("read %v and %v", s.TerminationGracePeriod.Duration, *s.ExpireAfter.Duration)
	}
	if err := json.Unmarshal([]byte(`{"expireAfter":"Never"}`), &s); err != nil || s.ExpireAfter.Duration != nil {
		t.Errorf("Never was read as %v, error %v", s.ExpireAfter.Duration, err)
	}
}

// The text is the user's only as long as it means the value: code that changes the value must not have to know about
// it.
func TestDurationTextFollowsTheValue(t *testing.T) {
	d := Duration{Raw: "24h", Duration: time.Hour}
	n := NillableDuration{Raw: "Never", Duration: &d.Duration}
	ended := NillableDuration{Raw: "24h"}
	all := []any{d, n, ended, NeverAfter(), After(2 * time.Minute), NewDuration(3 * time.Second)}
	want := `["1h0m0s","1h0m0s","Never","Never","2m0s","3s"]`
	if got, err := json.Marshal(all); err != nil || string(got) != want {
		t.Errorf("written as %s, want %s, error %v", got, want, err)
	}
}

// A field that code left alone must be left to the API server's default.
func TestDurationNotGivenIsLeftOut(t *testing.T) {
	got, err := json.Marshal(Disruption{})
	if err != nil || string(got) != `{}` {
		t.Errorf("written as %s, error %v", got, err)
	}
	asMap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&Disruption{ConsolidateAfter: NeverAfter()})
	if err != nil || len(asMap) != 1 || asMap["consolidateAfter"] != "Never" {
		t.Errorf("converted to %v, error %v", asMap, err)
	}
}

func TestWhatIsNoDuration(t *testing.T) {
	for _, text := range []string{`"1d"`, `"soon"`, `5`, `{}`, `""`} {
		var d Duration
		var n NillableDuration
		if d.UnmarshalJSON([]byte(text)) == nil || n.UnmarshalJSON([]byte(text)) == nil {
			t.Errorf("%s was read as %+v and %+v", text, d, n)
		}
	}
	n := After(time.Hour)
	if err := json.Unmarshal([]byte("null"), &n); err != nil || *n.Duration != time.Hour {
		t.Errorf("null gave %+v, error %v; it should change nothing", n, err)
	}
}

// The schemas take any number of digits. What is longer than Go can say is the longest that it can, and goes back as it
// came.
func TestDurationsBeyondMeasure(t *testing.T) {
	for _, text := range []string{"9999999h", "99999999999999999999s", "1h99999999999999999999m"} {
		spec := `{"terminationGracePeriod":"` + text + `","requirements":null,"nodeClassRef":null,"expireAfter":"` +
			text + `"}`
		var s NodeClaimTemplateSpec
		if err := json.Unmarshal([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		if s.TerminationGracePeriod.Duration < 292*365*24*time.Hour || *s.ExpireAfter.Duration < 292*365*24*time.Hour {
			t.Errorf("%s was read as %v and %v", text, s.TerminationGracePeriod.Duration, *s.ExpireAfter.Duration)
		}
		var back map[string]any
		got, err := json.Marshal(s)
		if err != nil || json.Unmarshal(got, &back) != nil || back["terminationGracePeriod"] != text ||
			back["expireAfter"] != text {
			t.Errorf("%s came back as %s, error %v", text, got, err)
		}
	}
	d := Duration{Raw: "99999999h"}
	if err := d.UnmarshalJSON([]byte(`"99999999h"`)); err != nil || NewDuration(d.Duration).text() != "2562047h0m0s" {
		t.Errorf("without its text it is %s, error %v", NewDuration(d.Duration).text(), err)
	}
	for _, text := range []string{`"1h99999999999999999999"`, `"h"`, `"-99999999999999999999h"`,
		`"99999999999999999999"`} {
		if d.UnmarshalJSON([]byte(text)) == nil {
			t.Errorf("%s was read as %+v", text, d)
		}
	}
}

// An empty list is not an absent one: no budgets are no bound, and absent budgets become 10%.
func TestEmptyListsStay(t *testing.T) {
	got, err := json.Marshal(Disruption{Budgets: []Budget{{Nodes: "1", Reasons: []DisruptionReason{}}}})
	if want := `{"budgets":[{"reasons":[],"nodes":"1"}]}`; err != nil || string(got) != want {
		t.Errorf("written as %s, want %s, error %v", got, want, err)
	}
	got, err = json.Marshal(Disruption{Budgets: []Budget{}})
	if want := `{"budgets":[]}`; err != nil || string(got) != want {
		t.Errorf("written as %s, want %s, error %v", got, want, err)
	}
}
