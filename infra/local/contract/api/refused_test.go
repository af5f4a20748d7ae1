package api

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/testing/syntax"
)

// mostCauses is how many lines of a refusal are kept; a list that is too long is refused item by item as well.
const mostCauses = 4

// TestRefused says for every rule which manifest breaks it and what its user reads. One file per kind:
//
//	base                 the manifest all others of the file start from
//	create [times=n]     the input merged into it (null removes a field); %d and %x in it: see grow
//	change               two inputs, parted by a line ---: created from the first, then updated to the second
//
// -rewrite brings the expected words up to date.
func TestRefused(t *testing.T) {
	c := newCluster(t)
	files, err := filepath.Glob("testdata/refused/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := scenario{cluster: c}
			datadriven.RunTest(t, file, s.run)
		})
	}
}

type scenario struct {
	cluster cluster
	base    map[string]any
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if err := syntax.NewGrammar(nil, "base", "create times=#", "change").Check(d); err != nil {
		d.Fatalf(t, "%v", err)
	}
	switch d.Cmd {
	case "base":
		s.base = object(t, d.Input)
		return s.create(t, s.merged(t, ""))
	case "create":
		input := d.Input
		if d.HasArg("times") {
			var times int
			d.ScanArgs(t, "times", &times)
			input = grow(t, input, times)
		}
		return s.create(t, s.merged(t, input))
	case "change":
		before, after, found := strings.Cut(d.Input, "---\n")
		if !found {
			d.Fatalf(t, "change wants two inputs parted by a line ---")
		}
		return s.change(t, s.merged(t, before), s.merged(t, after))
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (s *scenario) create(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	_, err := s.cluster.of(t, o).Create(t.Context(), o, options)
	return verdict(t, err)
}

func (s *scenario) change(t *testing.T, before, after *unstructured.Unstructured) string {
	t.Helper()
	r := s.cluster.of(t, before)
	stored, err := r.Create(t.Context(), before, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("create what shall be changed: %v", err)
	}
	after.SetResourceVersion(stored.GetResourceVersion())
	_, err = r.Update(t.Context(), after, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err := r.Delete(t.Context(), stored.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return verdict(t, err)
}

// verdict is what the API server says, one line per cause, sorted.
func verdict(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "accepted\n"
	}
	if apierrors.IsBadRequest(err) {
		return err.Error() + "\n"
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("not a refusal: %v", err)
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "<nil>" { // only says that there may be more
			lines = append(lines, cause.Field+": "+cause.Message+"\n")
		}
	}
	slices.Sort(lines)
	if more := len(lines) - mostCauses; more > 0 {
		lines = append(lines[:mostCauses], fmt.Sprintf("and %d more\n", more))
	}
	return strings.Join(lines, "")
}

func (s *scenario) merged(t *testing.T, input string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(merge(s.base, object(t, input)))}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatalf("read %s: %v", text, err)
	}
	return o
}

// merge lays one object over another as a JSON merge patch does, and changes neither.
func merge(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		child, isObject := value.(map[string]any)
		below, _ := out[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isObject:
			out[key] = merge(below, child)
		default:
			out[key] = value
		}
	}
	return out
}

// grow repeats every line that holds %d, counting, and every %x as so many x.
func grow(t *testing.T, text string, times int) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text + "\n") {
		if !strings.Contains(line, "%d") {
			out = append(out, strings.ReplaceAll(line, "%x", strings.Repeat("x", times)))
			continue
		}
		for i := range times {
			out = append(out, strings.ReplaceAll(line, "%d", strconv.Itoa(i)))
		}
	}
	return strings.Join(out, "")
}
