package settings_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/settings"
)

// TestSchema: editors learn of each setting its sentence, and of each kind which values it takes.
func TestSchema(t *testing.T) {
	raw, err := settings.Schema()
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
