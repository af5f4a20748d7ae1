package convert_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/cli/convert"
	"joiner.sh/pkg/testing/syntax"
	"joiner.sh/pkg/workload/manifest"
)

// TestConvert converts the manifests of the files, one file for each kind of old object. What comes out is shown as it
// is printed, then the warnings, or what is wrong with the input.
func TestConvert(t *testing.T) {
	words := syntax.NewGrammar(nil, "convert keep-al2 cluster= role= brief")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			docs, err := manifest.ParseManifests("in.yaml", []byte(d.Input))
			if err != nil {
				return "cannot be read: " + err.Error() + "\n"
			}
			o := convert.Options{KeepAL2: d.HasArg("keep-al2")}
			for arg, into := range map[string]*string{"cluster": &o.Cluster, "role": &o.Role} {
				if d.HasArg(arg) {
					d.ScanArgs(t, arg, into)
				}
			}
			r, err := convert.ConvertAll(docs, o)
			if err != nil {
				return "refused: " + strings.ReplaceAll(err.Error(), "\n", "\nrefused: ") + "\n"
			}
			return shown(t, r, d.HasArg("brief"))
		})
	})
}

// shown is the result as text; brief leaves out all of an object but what it is called.
func shown(t *testing.T, r convert.Result, brief bool) string {
	t.Helper()
	var out strings.Builder
	for _, o := range r.Objects {
		var what any = o.Pool
		switch {
		case o.Class != nil:
			what = o.Class
		case o.Pool == nil:
			what = json.RawMessage(o.Other.Body)
		}
		b, err := yaml.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		if brief {
			b = []byte(named(t, b) + "\n")
		}
		out.WriteString("- " + strings.ReplaceAll(strings.TrimSuffix(string(b), "\n"), "\n", "\n  ") + "\n")
	}
	for _, w := range r.Warnings {
		out.WriteString("warning: " + w + "\n")
	}
	return out.String()
}

func named(t *testing.T, object []byte) string {
	t.Helper()
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := yaml.Unmarshal(object, &head); err != nil {
		t.Fatal(err)
	}
	return head.APIVersion + " " + head.Kind + " " + head.Metadata.Name
}
