package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// Each layer of the list still stands in the code that it names, once.
func TestLayersApply(t *testing.T) {
	repository := os.DirFS(root)
	variants, err := listVariants(repository, "infra/lab/ablation/layers.txt", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(variants) < 10 {
		t.Errorf("%d layers are listed, want ten or more", len(variants))
	}
	for _, v := range variants {
		changed, err := v.apply(repository)
		if err != nil {
			t.Error(err)
		}
		if len(v.Edits) == 0 || len(changed) == 0 {
			t.Errorf("%s changes nothing", v.Name)
		}
	}
}

func TestLayersAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"in a.go\n":             `line 1: "in a.go" stands before a layer and its file`,
		"layer a\n- b\n":        `line 2: "- b" stands before a layer and its file`,
		"layer a\nin b.go\nc\n": `line 3: "c" begins with none of layer, in, - and +`,
	} {
		if _, err := parseLayers(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	v := variant{"twice", []edit{{"a.go", "x\n", "y\n"}}}
	if _, err := v.apply(fstest.MapFS{"a.go": {Data: []byte("x\nx\n")}}); err == nil ||
		!strings.Contains(err.Error(), "occurs 2 times") {
		t.Errorf("a text that occurs twice: %v", err)
	}
}

// Each chosen number becomes half and double; what a part between a half and one lacks to one does.
func TestConstantsVary(t *testing.T) {
	files := fstest.MapFS{"room/a.go": {Data: []byte("package room\n\nconst most, near = 12, 0.9\n\n" +
		"const mask, one = 0xff, 1 // and a flag\n\nfunc f() int { const some = 3 * 1e-6; return some }\n")},
		"room/a_test.go": {Data: []byte("package room\n\nconst tested = 7\n")}, "none": {}}
	variants, err := listVariants(files, "none", "room")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range variants {
		changed, err := v.apply(files)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(changed["room/a.go"]), "\n") {
			if !strings.Contains(string(files["room/a.go"].Data), line) {
				got[v.Name] += line
			}
		}
	}
	want := map[string]string{
		"room.most 12: half": "const most, near = 6, 0.9", "room.most 12: double": "const most, near = 24, 0.9",
		"room.near 0.9: half": "const most, near = 12, 0.95", "room.near 0.9: double": "const most, near = 12, 0.8",
		"room.some 3: half":   "func f() int { const some = 1 * 1e-6; return some }",
		"room.some 3: double": "func f() int { const some = 6 * 1e-6; return some }",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Families count alike, however many workloads they have, and what went wrong is told.
func TestComparison(t *testing.T) {
	was := []row{{"half-empty-1", 10, 0, 0, 1, 0}, {"half-empty-2", 10, 0, 0, 1, 0}, {"jobs", 20, 0, 50, 2, 0},
		{"w1", 1, 0, 9, 9, 0}}
	now := []row{{"half-empty-1", 11, 1, 0, 2, 0}, {"half-empty-2", 10, 0, 0, 2, 0}, {"jobs", 19, 0, 60, 2, 1}}
	got := compareRows("without x", was, outcome{Rows: now}).String()
	want := "| without x | +0.00 % | +5.00 % half-empty | +10.00 % half-empty-1 | 1.50 | " +
		"+1 pods without a node +20.0 % pods moved 1 rules broken |"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := compareRows("y", was, outcome{Failed: "build: a|b\nmore"}).String(); got != "| y | build: a/b | | | | |" {
		t.Errorf("what failed is told as %s", got)
	}
}

// What was measured is kept, and a file that is broken is refused.
func TestStateIsRead(t *testing.T) {
	file := t.TempDir() + "/state.json"
	if known, err := readState(file); err != nil || len(known) != 0 {
		t.Errorf("without a file: %v, %v", known, err)
	}
	if err := os.WriteFile(file, []byte(`{"as it is":{"Rows":[{"Workload":"w1"}]}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if known, err := readState(file); err != nil || len(known[asItIs].Rows) != 1 {
		t.Errorf("known is %v, %v", known, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(file); err == nil {
		t.Error("half a file is read")
	}
}

// The smallest workload is packed by this program, and its row says so.
func TestWorkloadsArePacked(t *testing.T) {
	t.Chdir(root)
	var b strings.Builder
	if err := packWorkloads(&b, []string{"infra/lab/bench/workloads/w1.json"}, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), `{"Workload":"w1","HourlyUSD":`) || !strings.Contains(b.String(), `"Wrong":0`) {
		t.Errorf("packed to %s", b.String())
	}
}
