package replay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/plan"
)

// Passes that earlier versions stored are read whole and decided again. The files of testdata say what is read no more,
// and what is decided otherwise now.
func TestStoredPasses(t *testing.T) {
	datadriven.RunTest(t, "testdata/stored.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "replay" {
			d.Fatalf(t, "%s is no command", d.Cmd)
		}
		data, err := os.ReadFile(filepath.Join("testdata", d.CmdArgs[0].Key))
		if err != nil {
			t.Fatal(err)
		}
		pass, err := decisionlog.DecodePass(data)
		if err != nil {
			t.Fatal(err)
		}
		again, err := replay.DecideAgain(pass)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintln(&b, pass.Record)
		for _, field := range unreadFields(t, data, pass) {
			fmt.Fprintf(&b, "not read: %s\n", field)
		}
		for _, line := range again.Was {
			fmt.Fprintf(&b, "%s %s\n", mark(again.Lines, line, "then"), line)
		}
		for _, line := range again.Lines {
			if !slices.Contains(again.Was, line) {
				fmt.Fprintf(&b, "now  %s\n", line)
			}
		}
		return b.String()
	})
}

// mark is the word given for a line that the other plan lacks.
func mark(other []string, line, word string) string {
	if slices.Contains(other, line) {
		return "both"
	}
	return word
}

// unreadFields are the fields of a stored pass that the types of now do not give back as they were, each with the first
// value that is lost.
func unreadFields(t *testing.T, data []byte, pass decisionlog.Pass) []string {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(zr)
	var record, body any
	if err := d.Decode(&record); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&body); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	compareFields(out, "", record, asJSON(t, pass.Record))
	compareFields(out, "", body, asJSON(t, pass.Body))
	var memory disruption.Memory
	var decided any = &plan.Plan{}
	if pass.Function == decisionlog.Disrupt {
		decided = &disruption.Plan{}
		if err := json.Unmarshal(pass.Memory, &memory); err != nil {
			t.Fatal(err)
		}
		compareFields(out, "memory", body.(map[string]any)["memory"], asJSON(t, memory))
	}
	if err := json.Unmarshal(pass.Plan, decided); err != nil {
		t.Fatal(err)
	}
	compareFields(out, "plan", body.(map[string]any)["plan"], asJSON(t, decided))
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(out)) {
		lines = append(lines, strings.TrimPrefix(path, ".")+" = "+out[path])
	}
	return lines
}

// asJSON is the value as JSON gives it back.
func asJSON(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// compareFields adds the paths at which then has a value that now lacks or has otherwise. Zeros may be left out.
func compareFields(out map[string]string, path string, then, now any) {
	switch then := then.(type) {
	case map[string]any:
		now, _ := now.(map[string]any)
		for key, value := range then {
			compareFields(out, path+"."+key, value, now[key])
		}
	case []any:
		now, _ := now.([]any)
		for i, value := range then {
			var same any
			if i < len(now) {
				same = now[i]
			}
			compareFields(out, path+"[]", value, same)
		}
	default:
		zero := then == nil || reflect.ValueOf(then).IsZero() || then == "0001-01-01T00:00:00Z"
		if _, told := out[path]; !told && !reflect.DeepEqual(then, now) && (!zero || now != nil) {
			out[path] = fmt.Sprint(then)
		}
	}
}
