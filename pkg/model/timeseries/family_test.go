package timeseries

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestEveryMetricOfKarpenterIsSentOrOmittedForAReason: testdata/karpenter.txt is what Karpenter registers, which the
// bench compares with its code.
func TestEveryMetricOfKarpenterIsSentOrOmittedForAReason(t *testing.T) {
	omitted, theirs := map[string]bool{}, map[string]bool{}
	for _, line := range readLines(t, "omitted.tsv") {
		name, reason, _ := strings.Cut(line, "\t")
		omitted[name] = true
		if reason == "" {
			t.Errorf("%s is omitted without a reason", name)
		}
	}
	for _, line := range readLines(t, "karpenter.txt") {
		name, labels, _ := strings.Cut(line, " ")
		theirs[name] = true
		f, sent := FindFamily(name)
		if sent == omitted[name] {
			t.Errorf("%s: sent %v, omitted %v", name, sent, omitted[name])
		}
		if !sent {
			continue
		}
		want := strings.Split(labels, ",")
		if labels == "" {
			want = []string{}
		}
		if f.Labels == nil {
			f.Labels = nodeFamilyLabels(f.Name)
		}
		if !slices.Equal(f.Labels, want) {
			t.Errorf("%s has the labels\n%v, Karpenter's has\n%v", name, f.Labels, want)
		}
	}
	for _, f := range Families() {
		if strings.HasPrefix(f.Name, "karpenter_") && !theirs[f.Name] {
			t.Errorf("Karpenter has no %s", f.Name)
		}
		if f.Help == "" {
			t.Errorf("%s has no help", f.Name)
		}
		if strings.HasSuffix(f.Name, "_total") != (f.Kind == Counter) && f.Name != poolsCost {
			t.Errorf("%s is of kind %d", f.Name, f.Kind)
		}
	}
}
