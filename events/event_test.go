package events_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner/events"
)

func TestSpotInterruptionSampleDecodes(t *testing.T) {
	got, err := events.DecodeSpotInterruption(sample(t, events.KindSpotInterruption))
	if err != nil {
		t.Fatal(err)
	}
	want := events.SpotInterruption{
		Version: "0", ID: "6c1b7a52-93fe-4f0d-a1c8-5d2e7b904f13", DetailType: "EC2 Spot Instance Interruption Warning",
		Source: "aws.ec2", Account: "111122223333", Time: time.Date(2026, 9, 14, 17, 42, 8, 0, time.UTC), Region: "us-west-2",
		Resources: []string{"arn:aws:ec2:us-west-2a:instance/i-0f3c9a7d51be2846c"},
		Detail:    events.SpotInterruptionDetail{InstanceID: "i-0f3c9a7d51be2846c", InstanceAction: "terminate"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
}

func TestTickSampleDecodes(t *testing.T) {
	got, err := events.DecodeTick(sample(t, events.KindTick))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"arn:aws:events:us-west-2:111122223333:rule/joiner-demo-provision-tick"}; !slices.Equal(got.Resources, want) {
		t.Errorf("resources %q, want %q", got.Resources, want)
	}
}

func TestDeployedSampleDecodes(t *testing.T) {
	got, err := events.DecodeDeployed(sample(t, events.KindDeployed))
	if err != nil {
		t.Fatal(err)
	}
	want := events.DeployedDetail{
		StackID:       "arn:aws:cloudformation:us-west-2:111122223333:stack/joiner-demo/9d2f6b10-91c4-11f1-8a3e-0a58a9feac02",
		StatusDetails: events.StatusDetails{Status: "CREATE_COMPLETE"},
	}
	if d := cmp.Diff(want, got.Detail); d != "" {
		t.Errorf("detail (-want +got):\n%s", d)
	}
}

func TestForeignAndMalformedEventsAreRefused(t *testing.T) {
	spot := string(sample(t, events.KindSpotInterruption))
	for name, c := range map[string]struct{ data, want string }{
		"not JSON":    {"{", "decode event: unexpected end of JSON input"},
		"wrong shape": {`{"detail":"x"}`, "decode event: json: cannot unmarshal"},
		"other kind":  {string(sample(t, events.KindTick)), `it is "Scheduled Event" from "aws.events"`},
		"no id":       {strings.Replace(spot, `"i-0f3c9a7d51be2846c"`, `""`, 1), `"" is no instance id`},
		"strange id":  {strings.Replace(spot, `"instance-id": "i-0f3c9a7d51be2846c"`, `"instance-id": "../x"`, 1), `"../x" is no instance id`},
	} {
		_, err := events.DecodeSpotInterruption([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestPatternsMatchTheirSampleAndNoOther holds for patterns made of exact values, which is all we use: each leaf is a list
// of strings, and the sample has one of them at the same place.
func TestPatternsMatchTheirSampleAndNoOther(t *testing.T) {
	for _, p := range events.Kinds() {
		raw, err := p.Pattern()
		if err != nil {
			t.Fatal(err)
		}
		var pattern map[string]any
		if err := json.Unmarshal(raw, &pattern); err != nil {
			t.Fatalf("pattern of %s: %v", p, err)
		}
		for _, s := range events.Kinds() {
			var event map[string]any
			if err := json.Unmarshal(sample(t, s), &event); err != nil {
				t.Fatalf("sample of %s: %v", s, err)
			}
			if got, want := matches(pattern, event), p == s; got != want {
				t.Errorf("pattern of %s matches sample of %s: %t, want %t", p, s, got, want)
			}
		}
	}
}

func TestEveryFileBelongsToAKind(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, isJSON := strings.CutSuffix(e.Name(), ".json")
		kind, _, _ := strings.Cut(name, ".")
		if isJSON && !slices.Contains(events.Kinds(), events.Kind(kind)) {
			t.Errorf("%s belongs to no kind of Kinds", e.Name())
		}
	}
}

func matches(pattern, event map[string]any) bool {
	for field, want := range pattern {
		switch want := want.(type) {
		case map[string]any:
			inner, ok := event[field].(map[string]any)
			if !ok || !matches(want, inner) {
				return false
			}
		case []any:
			if !slices.Contains(want, event[field]) {
				return false
			}
		default:
			return false // not a pattern: EventBridge wants lists at the leaves
		}
	}
	return len(pattern) > 0
}

func sample(t *testing.T, k events.Kind) []byte {
	t.Helper()
	b, err := k.Sample()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
