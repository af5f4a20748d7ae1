package events_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/events"
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
	state, health := string(sample(t, events.KindStateChange)), string(sample(t, events.KindScheduledChange))
	decoders := map[events.Kind]func(data string) error{
		events.KindSpotInterruption:        func(s string) error { _, err := events.DecodeSpotInterruption([]byte(s)); return err },
		events.KindRebalance:               func(s string) error { _, err := events.DecodeRebalance([]byte(s)); return err },
		events.KindStateChange:             func(s string) error { _, err := events.DecodeStateChange([]byte(s)); return err },
		events.KindScheduledChange:         func(s string) error { _, err := events.DecodeScheduledChange([]byte(s)); return err },
		events.KindReservationInterruption: func(s string) error { _, err := events.DecodeReservationInterruption([]byte(s)); return err },
	}
	for kind, decode := range decoders {
		for data, want := range map[string]string{
			"{":                                    "decode event: unexpected end of JSON input",
			"[]":                                   "decode event: json: cannot unmarshal array",
			`{"detail":"x"}`:                       "decode event: json: cannot unmarshal",
			`{}`:                                   `it is "" from ""`,
			`null`:                                 `it is "" from ""`,
			string(sample(t, events.KindDeployed)): `it is "CloudFormation Stack Status Change" from "aws.cloudformation"`,
			`{"resources":5}`:                      "decode event: json: cannot unmarshal number",
			`{"source":"aws.ec2","time":"later"}`:  "decode event: parsing time",
		} {
			if err := decode(data); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s from %s: got error %v, want one with %q", kind, data, err, want)
			}
		}
	}
	for name, c := range map[string]struct {
		kind           events.Kind
		old, new, want string
	}{
		"no id":            {events.KindSpotInterruption, `"i-0f3c9a7d51be2846c"`, `""`, `"" is no instance id`},
		"strange id":       {events.KindSpotInterruption, `"instance-id": "i-0f3c9a7d51be2846c"`, `"instance-id": "../x"`, `"../x" is no instance id`},
		"unknown state":    {events.KindStateChange, `"running"`, `"rebooting"`, `"rebooting" is no state of an instance`},
		"another service":  {events.KindScheduledChange, `"EC2"`, `"RDS"`, `not a scheduledChange of EC2`},
		"another category": {events.KindScheduledChange, `"scheduledChange"`, `"issue"`, `it is about "issue" of "EC2"`},
	} {
		text := map[events.Kind]string{events.KindSpotInterruption: spot, events.KindStateChange: state, events.KindScheduledChange: health}[c.kind]
		if err := decoders[c.kind](strings.Replace(text, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestPatternsMatchTheirSamplesAndNoOther holds for patterns made of exact values, which is all we use: each leaf is a
// list of strings, and the sample has one of them at the same place.
func TestPatternsMatchTheirSamplesAndNoOther(t *testing.T) {
	foreign, err := events.ForeignEvents()
	if err != nil || len(foreign) != 3 {
		t.Fatalf("%d foreign events, %v", len(foreign), err)
	}
	for _, p := range events.AllKinds() {
		raw, err := p.Pattern()
		if err != nil {
			t.Fatal(err)
		}
		var pattern map[string]any
		if err := json.Unmarshal(raw, &pattern); err != nil {
			t.Fatalf("pattern of %s: %v", p, err)
		}
		check := func(name string, event []byte, want bool) {
			var e map[string]any
			if err := json.Unmarshal(event, &e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := matches(pattern, e); got != want {
				t.Errorf("pattern of %s matches %s: %t, want %t", p, name, got, want)
			}
		}
		for _, s := range events.AllKinds() {
			for name, event := range samples(t, s) {
				check(name, event, p == s)
			}
		}
		for name, event := range foreign {
			check(name, event, false)
		}
	}
}

func TestRebalanceSampleDecodes(t *testing.T) {
	got, err := events.DecodeRebalance(sample(t, events.KindRebalance))
	if err != nil || got.Detail.InstanceID != "i-0f3c9a7d51be2846c" || !got.Time.Equal(time.Date(2026, 9, 14, 17, 31, 55, 0, time.UTC)) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStateChangeSamplesDecode(t *testing.T) {
	var got []string
	all := samples(t, events.KindStateChange)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e, err := events.DecodeStateChange(all[name])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Detail.State+" "+e.Detail.InstanceID)
	}
	want := []string{"running i-07d25e81b4c96fa30", "shutting-down i-0f3c9a7d51be2846c", "stopped i-0a96b3f27ce41d58e",
		"stopping i-0a96b3f27ce41d58e", "terminated i-0f3c9a7d51be2846c"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	shouted := strings.Replace(string(sample(t, events.KindStateChange)), `"running"`, `"RUNNING"`, 1)
	if e, err := events.DecodeStateChange([]byte(shouted)); err != nil || e.Detail.State != "running" || !strings.Contains(shouted, "RUNNING") {
		t.Errorf("in upper case: state %q, %v", e.Detail.State, err)
	}
}

func TestReservationInterruptionDecodesUnderBothNames(t *testing.T) {
	text := string(sample(t, events.KindReservationInterruption))
	for _, c := range []string{text,
		strings.Replace(text, "EC2 Capacity Reservation", "EC2 Interruptible Capacity Reservation", 1),
		// resources as AWS' guide prints them
		strings.NewReplacer("[\n    \"arn", "\"arn", "\"\n  ],", "\",").Replace(text),
		strings.Replace(text, `"resources": [`, `"resources": null, "more": [`, 1),
	} {
		got, err := events.DecodeReservationInterruption([]byte(c))
		want := events.ReservationInterruptionDetail{InstanceID: "i-0e8b4a6f3d19c7052", InstanceAction: "terminate",
			Termination: events.When(time.Date(2026, 9, 14, 20, 17, 3, 0, time.UTC)), ZoneID: "usw2-az1"}
		if d := cmp.Diff(want, got.Detail, cmp.Comparer(func(a, b events.When) bool { return a.Time().Equal(b.Time()) })); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s\nof %s", err, d, c)
		}
	}
}

func TestScheduledChangeSamplesDecode(t *testing.T) {
	got := map[string][]string{}
	for name, text := range samples(t, events.KindScheduledChange) {
		e, err := events.DecodeScheduledChange(text)
		if err != nil {
			t.Fatal(err)
		}
		d := e.Detail
		got[name] = append([]string{d.StatusCode, d.EventRegion, d.EventTypeCode, d.StartTime.Time().Format(time.RFC3339)}, d.AffectedInstances()...)
	}
	want := map[string][]string{
		"scheduled-change.sample.json": {"upcoming", "us-west-2", "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", "2026-09-28T03:00:00Z",
			"i-0c41f8e9d72b5a603", "i-0be57d2140fa96c83"},
		"scheduled-change.arn.sample.json": {"open", "us-west-2", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", "2026-09-28T03:00:00Z",
			"i-0c41f8e9d72b5a603"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("scheduled changes (-want +got):\n%s", d)
	}
}

// TestScheduledChangeOfOtherThings: hosts are no instances, and a date that nobody can read is none.
func TestScheduledChangeOfOtherThings(t *testing.T) {
	text := strings.NewReplacer("i-0be57d2140fa96c83", "h-0123456789abcdef0", "Mon, 28 Sep 2026 03:00:00 GMT", "soon").
		Replace(string(sample(t, events.KindScheduledChange)))
	e, err := events.DecodeScheduledChange([]byte(text))
	if err != nil || !e.Detail.StartTime.Time().IsZero() || !slices.Equal(e.Detail.AffectedInstances(), []string{"i-0c41f8e9d72b5a603"}) {
		t.Errorf("start %s, instances %v, %v", e.Detail.StartTime.Time(), e.Detail.AffectedInstances(), err)
	}
}

// TestAnEventGoesOnForSomeOfItsInstances: an instance that was rebooted already, or that turned out to be sound, has
// nothing to fear of the date that others wait for.
func TestAnEventGoesOnForSomeOfItsInstances(t *testing.T) {
	text := string(sample(t, events.KindScheduledChange))
	for status, want := range map[string][]string{
		"PENDING": {"i-0c41f8e9d72b5a603", "i-0be57d2140fa96c83"}, "IMPAIRED": {"i-0c41f8e9d72b5a603", "i-0be57d2140fa96c83"},
		"UNKNOWN": {"i-0c41f8e9d72b5a603", "i-0be57d2140fa96c83"}, "": {"i-0c41f8e9d72b5a603", "i-0be57d2140fa96c83"},
		"RESOLVED": {"i-0be57d2140fa96c83"}, "UNIMPAIRED": {"i-0be57d2140fa96c83"},
	} {
		e, err := events.DecodeScheduledChange([]byte(strings.Replace(text, `"status": "PENDING"`, `"status": "`+status+`"`, 1)))
		if got := e.Detail.AffectedInstances(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: instances %v, %v, want %v", status, got, err, want)
		}
	}
}

// TestDatesAsOthersWriteThem: a date that is not read counts as one of this moment, and costs the node at once.
func TestDatesAsOthersWriteThem(t *testing.T) {
	text := string(sample(t, events.KindScheduledChange))
	for written, want := range map[string]string{
		"Mon, 28 Sep 2026 03:00:00 GMT": "2026-09-28T03:00:00Z", "Mon, 5 Oct 2026 03:00:00 GMT": "2026-10-05T03:00:00Z",
		"Mon, 05 Oct 2026 03:00:00 UTC": "2026-10-05T03:00:00Z", "Mon, 5 Oct 2026 05:00:00 +0200": "2026-10-05T03:00:00Z",
		"2026-10-05T03:00:00Z": "2026-10-05T03:00:00Z", "2026-10-05T03:00:00.000Z": "2026-10-05T03:00:00Z",
		"2026-10-05T05:00:00+02:00":    "2026-10-05T03:00:00Z",
		"Sat, 5 Oct 2026 03:00:00 GMT": "2026-10-05T03:00:00Z", // AWS' own samples have the wrong day of the week
	} {
		e, err := events.DecodeScheduledChange([]byte(strings.Replace(text, "Mon, 28 Sep 2026 03:00:00 GMT", written, 1)))
		if got := e.Detail.StartTime.Time().Format(time.RFC3339); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", written, got, err, want)
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
		if isJSON && !slices.Contains(events.AllKinds(), events.Kind(kind)) {
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

func samples(t *testing.T, k events.Kind) map[string][]byte {
	t.Helper()
	out, err := k.Samples()
	if err != nil || out[string(k)+".sample.json"] == nil {
		t.Fatalf("samples of %s: %v, %d found", k, err, len(out))
	}
	return out
}
