package stack_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

// TestListsAndObjectsHoldPlainTexts: a comma would make two of one, and what is no text would be left out unseen.
func TestListsAndObjectsHoldPlainTexts(t *testing.T) {
	const inList = "it is a list with something in it that is no plain text"
	const inObject = "it is an object with something in it that is no plain text"
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"nodePolicies", []any{"One,Two"}, inList},
		{"nodePolicies", []any{"One", []any{"Two"}}, inList},
		{"tags", map[string]any{"team": "red,blue"}, inObject},
		{"tags", map[string]any{"team": []any{"red"}}, inObject},
	} {
		_, err := synth(t, map[string]any{"clusterName": "demo", c.key: c.value})
		if want := "context key " + c.key + ": " + c.want; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as %v: got error %v, want %q", c.key, c.value, err, want)
		}
	}
}

// TestPagesListTheSettings compares the tables of infra/README.md and infra/settings.md with pkg/settings and
// pkg/model/annotations; `make golden` rewrites them.
func TestPagesListTheSettings(t *testing.T) {
	generated(t, "../README.md", settingsBegin, settingsEnd, markdownFirst())
	generated(t, "../settings.md", settingsBegin, settingsEnd, markdownReference()+markdownPool())
}

// TestSchemaHasTheSettings compares the schema of cdk.json with pkg/settings, and cdk.json with the schema; `make golden`
// rewrites it.
func TestSchemaHasTheSettings(t *testing.T) {
	want, err := settingsSchema()
	if err != nil {
		t.Fatal(err)
	}
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile("../settings.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("../settings.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("infra/settings.schema.json is out of date; run make golden")
	}
	raw, err := os.ReadFile("../../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var app struct {
		Schema  string `json:"$schema"`
		Context map[string]any
	}
	if err := json.Unmarshal(raw, &app); err != nil {
		t.Fatal(err)
	}
	if app.Schema != "./infra/settings.schema.json" {
		t.Errorf("cdk.json has the schema %q", app.Schema)
	}
}

const (
	settingsBegin = "checked by its test -->\n"
	settingsEnd   = "<!-- end of settings -->"
)
