package stack_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/settings"
)

// firstScreen names the settings that most clusters set, in the order in which one meets them.
func firstScreen() []string {
	return []string{"clusterName", "mode", "disruption", "nodeRole", "vpcID", "subnetIDs", "clusterSecurityGroupID",
		"functionMemory", "trigger", "commitments", "rebalance", "decisionLog", "alarmEmail", "priceAlarmUSD", "onDelete"}
}

// markdownFirst is the table of the settings that most clusters set.
func markdownFirst() string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, name := range firstScreen() {
		s, _ := settings.FindSetting(name)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, shownDefault(s), s.Doc)
	}
	return b.String()
}

// markdownReference has a heading and a table for each group of settings that cdk.json takes.
func markdownReference() string {
	var groups []string
	byGroup := map[string][]settings.Setting{}
	for _, s := range settings.AllSettings() {
		if s.ByStack || s.ByTests {
			continue
		}
		if !slices.Contains(groups, s.Group) {
			groups = append(groups, s.Group)
		}
		byGroup[s.Group] = append(byGroup[s.Group], s)
	}
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n%s", g, markdownTable(byGroup[g]))
	}
	return b.String()
}

func markdownTable(of []settings.Setting) string {
	var b strings.Builder
	b.WriteString("| setting | default | unit | meaning |\n|---|---|---|---|\n")
	for _, s := range of {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, shownDefault(s), s.Unit, s.Doc)
	}
	return b.String()
}

func shownDefault(s settings.Setting) string {
	if s.Required {
		return "required"
	}
	return s.Default
}

// markdownPool is the heading and the table of what people write into the metadata of NodePools.
func markdownPool() string {
	var b strings.Builder
	b.WriteString("\n## Annotations of NodePools\n\nThey stand in the metadata of the NodePool. " +
		"The last column says what waits while Joiner does not know the value.\n\n")
	b.WriteString("| annotation | value | meaning | with another value |\n|---|---|---|---|\n")
	for _, a := range annotations.ListPool() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Key, a.Values, a.Does, a.Stops)
	}
	return b.String()
}

// settingsSchema is the JSON schema of cdk.json, by which editors complete and check the keys of its context.
func settingsSchema() ([]byte, error) {
	one := map[string]any{}
	for _, s := range settings.AllSettings() {
		if !s.ByStack && !s.ByTests {
			one[s.Name] = schemaOf(s)
		}
	}
	context := map[string]any{"clusters": map[string]any{
		"description": "One stack for each object. What an object does not set, the settings beside the list do.",
		"type":        "array", "minItems": 1,
		"items": map[string]any{"type": "object", "properties": one, "additionalProperties": false},
	}}
	for name, s := range one {
		context[name] = s
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"title":   "cdk.json of Joiner",
		"type":    "object",
		"properties": map[string]any{"context": map[string]any{
			"type": "object", "properties": context, "additionalProperties": false,
			// what CDK keeps there itself
			"patternProperties": map[string]any{"^@|:|^cli-": map[string]any{}},
		}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return append(text, '\n'), nil
}

func schemaOf(s settings.Setting) map[string]any {
	out := map[string]any{"description": fmt.Sprintf("%s Allowed: %s.", s.Doc, s.Allowed)}
	if s.Default != "" {
		out["default"] = s.Default
	}
	texts := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	switch s.Kind {
	case settings.KindText:
		out["type"] = "string"
	case settings.KindChoice:
		out["enum"] = choicesOf(s)
	case settings.KindWhole:
		out["type"] = []string{"integer", "string"}
	case settings.KindNumber:
		out["type"] = []string{"number", "string"}
	case settings.KindList:
		out["anyOf"] = []map[string]any{{"type": "string"}, texts}
	case settings.KindPairs:
		out["anyOf"] = []map[string]any{{"type": "string"}, texts,
			{"type": "object", "additionalProperties": map[string]any{"type": "string"}}}
	case settings.KindSwitch:
		out["anyOf"] = []map[string]any{{"type": []string{"boolean", "number", "string"}}, texts}
	case settings.KindStatements:
		out["anyOf"] = []map[string]any{{"type": "string"}, {"type": "array", "items": map[string]any{"type": "object"}}}
	}
	return out
}

// choicesOf are the words of a choice, and for true and false these values as well.
func choicesOf(s settings.Setting) []any {
	words := strings.Split(strings.ReplaceAll(s.Allowed, " or ", ", "), ", ")
	var out []any
	for _, w := range words {
		if w == "true" || w == "false" {
			out = append(out, w == "true")
		}
		out = append(out, w)
	}
	return out
}

// TestSchema: editors learn of each setting its sentence, and of each kind which values it takes.
func TestSchema(t *testing.T) {
	raw, err := settingsSchema()
	if err != nil {
		t.Fatal(err)
	}
	type setting struct {
		Description, Default string
		Type, Enum           any
		AnyOf                []map[string]any
	}
	type properties struct {
		Properties           map[string]setting
		AdditionalProperties bool
		PatternProperties    map[string]any
	}
	var schema struct {
		Properties struct{ Context properties }
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	context := schema.Properties.Context
	if context.AdditionalProperties || len(context.PatternProperties) != 1 {
		t.Errorf("a misspelt key is not marked, or a key of CDK is: %+v", context)
	}
	for _, s := range settings.AllSettings() {
		got, found := context.Properties[s.Name]
		if found == (s.ByStack || s.ByTests) {
			t.Errorf("%s is in the schema: %t", s.Name, found)
		}
		if found && (got.Description == "" || got.Default != s.Default || got.Type == nil && got.Enum == nil && got.AnyOf == nil) {
			t.Errorf("%s says %+v", s.Name, got)
		}
	}
	for name, want := range map[string]setting{
		"mode":                    {Enum: []any{"act", "observe"}},
		"tracing":                 {Enum: []any{true, "true", false, "false"}},
		"functionMemory":          {Type: []any{"integer", "string"}},
		"interruptionConcurrency": {Type: []any{"integer", "string"}},
		"priceAlarmUSD":           {Type: []any{"number", "string"}},
		"vmMemoryOverheadPercent": {Type: []any{"number", "string"}},
		"windowsNodes":            {AnyOf: []map[string]any{{"type": []any{"boolean", "number", "string"}}, {"type": "array", "items": map[string]any{"type": "string"}}}},
		"batchIdle":               {Type: "string"},
		"logRetentionDays":        {Type: []any{"integer", "string"}},
		"subnetIDs":               {AnyOf: []map[string]any{{"type": "string"}, {"type": "array", "items": map[string]any{"type": "string"}}}},
	} {
		got := context.Properties[name]
		got.Description, got.Default = "", ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
