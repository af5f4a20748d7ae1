package stack_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// place is where a stack is deployed.
type place struct{ partition, region string }

// holds evaluates a condition of a template.
func (p place) holds(t *testing.T, condition any) bool {
	t.Helper()
	for name, argument := range condition.(map[string]any) {
		of := argument.([]any)
		switch name {
		case "Fn::Equals":
			return text(p.value(t, nil, of[0])) == of[1]
		case "Fn::Not":
			return !p.holds(t, of[0])
		case "Fn::And":
			for _, c := range of {
				if !p.holds(t, c) {
					return false
				}
			}
			return true
		}
	}
	t.Fatalf("condition %v is not understood", condition)
	return false
}

// value is what CloudFormation makes of a value of the template; nil for none.
func (p place) value(t *testing.T, conditions map[string]any, v any) any {
	t.Helper()
	m, _ := v.(map[string]any)
	switch m["Ref"] {
	case "AWS::Partition":
		return p.partition
	case "AWS::Region":
		return p.region
	case "AWS::NoValue":
		return nil
	}
	choice, is := m["Fn::If"].([]any)
	switch {
	case !is:
		return v
	case p.holds(t, conditions[choice[0].(string)]):
		return p.value(t, conditions, choice[1])
	}
	return p.value(t, conditions, choice[2])
}

// Where Lambda lacks a feature the template does not ask for it: the deployment would fail on that.
func TestTheTemplateAsksForWhatTheRegionHas(t *testing.T) {
	const loops, tags = "Allow Allow Allow", "[map[Key:owner Value:platform]]"
	raw, err := json.Marshal(mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "tags": map[string]any{"owner": "platform"}}).ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Conditions map[string]any
		Resources  map[string]resource
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[place][2]string{
		{"aws", "us-east-1"}:            {loops, tags},
		{"aws", "eu-south-2"}:           {loops, tags},
		{"aws", "mx-central-1"}:         {"", tags},
		{"aws", "ap-southeast-6"}:       {"", tags},
		{"aws-us-gov", "us-gov-west-1"}: {"", "<nil>"},
		{"aws-cn", "cn-north-1"}:        {"", tags},
		{"aws-iso", "us-iso-east-1"}:    {"", tags},
	} {
		var gotLoops, gotTags string
		template{made.Resources}.each("AWS::Lambda::Function", func(_ string, p map[string]any) {
			if v := at.value(t, made.Conditions, p["RecursiveLoop"]); v != nil {
				if gotLoops != "" {
					gotLoops += " "
				}
				gotLoops += fmt.Sprint(v)
			}
		})
		template{made.Resources}.each("AWS::Lambda::EventSourceMapping", func(_ string, p map[string]any) {
			gotTags += fmt.Sprint(at.value(t, made.Conditions, p["Tags"]))
		})
		if gotLoops != want[0] || gotTags != want[1] {
			t.Errorf("%v: loops %q and tags of the mapping %q, want %q", at, gotLoops, gotTags, want)
		}
	}
}
