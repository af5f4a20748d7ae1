package cloudformation_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// commitBefore is whose forms are kept beside today's: stacks of it exist, and are updated.
const commitBefore = "91542843"

var keep = flag.String("keep", "", "the commit whose forms are kept in testdata from now on; needs the history")

const (
	formsFolder = "infra/stack/synthesized"
	keptForms   = "testdata/forms-" + commitBefore + ".txt.gz"
)

// parsed are the forms that were read, by file and name: what a test gets is a copy.
var parsed sync.Map

// formOf is a copy of what read says, which is asked once for each name.
func formOf(name string, read func() map[string]any) map[string]any {
	have, ok := parsed.Load(name)
	if !ok {
		have, _ = parsed.LoadOrStore(name, read())
	}
	return cloneJSON(have).(map[string]any)
}

// cloneJSON is a deep copy of what encoding/json makes.
func cloneJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			out[k] = cloneJSON(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = cloneJSON(inner)
		}
		return out
	}
	return v
}

// form is a template as infra/stack keeps it.
func form(t *testing.T, name string) map[string]any {
	t.Helper()
	return formOf(name, func() map[string]any {
		read := func(name string) (out map[string]any) {
			text, err := os.ReadFile(filepath.Join("../../..", formsFolder, name+".json"))
			if err == nil {
				err = json.Unmarshal(text, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		all := read("plain")
		if name != "plain" {
			for id, r := range read(name) {
				if all[id] = r; r == nil {
					delete(all, id)
				}
			}
		}
		return all
	})
}

// formNames are those of all forms.
func formNames(t *testing.T) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", formsFolder, "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d forms, %v", len(files), err)
	}
	for _, file := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return out
}

// formBefore is a form as commitBefore has it. One that there was not yet is what plain was.
func formBefore(t *testing.T, name string) map[string]any {
	t.Helper()
	return formOf(commitBefore+" "+name, func() map[string]any {
		all := map[string]any{}
		lines := keptLines(t)
		for _, of := range []string{"plain", name} {
			for _, line := range lines {
				forms, rest, _ := strings.Cut(line, " ")
				if !slices.Contains(strings.Split(forms, ","), of) {
					continue
				}
				id, text, _ := strings.Cut(rest, " ")
				var r any
				if err := json.Unmarshal([]byte(text), &r); err != nil {
					t.Fatal(err)
				}
				if all[id] = r; r == nil {
					delete(all, id)
				}
			}
		}
		if len(all) == 0 {
			t.Fatalf("%s has no form", keptForms)
		}
		return all
	})
}

func keptLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(keptForms)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(plain), "\n")
}

// TestKeptForms writes the forms of a commit down when told to: a line has the names of forms, a logical id, and what the
// resource is in them that is another one in plain, or none.
func TestKeptForms(t *testing.T) {
	if *keep == "" {
		for _, name := range formNames(t) {
			if n := len(formBefore(t, name)); n < 90 {
				t.Errorf("%s had %d resources", name, n)
			}
		}
		return
	}
	show := func(what string) []byte {
		out, err := exec.CommandContext(t.Context(), "git", "-C", "../../..", "show", what).Output()
		if err != nil {
			t.Fatalf("git show %s: %v", what, err)
		}
		return out
	}
	forms := map[string][]string{} // by the rest of the line, behind its type
	for _, name := range strings.Fields(string(show(*keep + ":" + formsFolder))) {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		var resources map[string]json.RawMessage
		if err := json.Unmarshal(show(*keep+":"+formsFolder+"/"+name), &resources); err != nil {
			t.Fatal(err)
		}
		for id, text := range resources {
			var r struct{ Type string }
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			line := r.Type + "\t" + id + " " + string(text)
			forms[line] = append(forms[line], strings.TrimSuffix(name, ".json"))
		}
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Sorted(maps.Keys(forms)) { // like beside like
		_, rest, _ := strings.Cut(line, "\t")
		if _, err := fmt.Fprintf(z, "%s %s\n", strings.Join(forms[line], ","), rest); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/forms-"+*keep+".txt.gz", b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// template reads a form after something was changed in it.
func template(t *testing.T, name string, change func(resources map[string]any)) *assembly.Template {
	t.Helper()
	all := form(t, name)
	if change != nil {
		change(all)
	}
	return parseForm(t, all)
}

// parseForm reads a template of these resources for a region that has everything: what regions lack infra/stack knows.
func parseForm(t *testing.T, resources map[string]any) *assembly.Template {
	t.Helper()
	yes := map[string]any{"Fn::Equals": []any{"aws", map[string]any{"Ref": "AWS::Partition"}}}
	text, err := json.Marshal(map[string]any{"Resources": resources,
		"Conditions": map[string]any{"LoopDetection": yes, "MappingTags": yes}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := assembly.ParseTemplate("joiner-demo", text, assembly.Place{Account: "111122223333", Region: region})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
