package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

func TestFilesAreWhatTheTypesSay(t *testing.T) {
	fresh := t.TempDir()
	if err := generate(root, fresh); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"crds", "borrowed"} {
		want, got := readAll(t, filepath.Join(fresh, dir)), readAll(t, filepath.Join(root, "pkg/install", dir))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pkg/install/%s is out of date, run `make crds` (-fresh +stored):\n%s", dir, diff)
		}
	}
}

func TestDeepCopyIsWhatTheTypesSay(t *testing.T) {
	for _, dir := range []string{"pkg/api/v1", "pkg/api/v1alpha1", "pkg/api/aws/v1", "pkg/api/autoscaling/v1beta1", "pkg/api/joiner/v1alpha1"} {
		fresh := t.TempDir()
		if err := runTool(root, "object", "paths=./"+dir, "output:object:dir="+fresh); err != nil {
			t.Fatal(err)
		}
		want, got := readAll(t, fresh), readAll(t, filepath.Join(root, dir))
		for name, text := range want {
			if diff := cmp.Diff(text, got[name]); diff != "" {
				t.Errorf("%s/%s is out of date, run `make crds` (-fresh +stored):\n%s", dir, name, diff)
			}
		}
	}
}

func TestMissingToolNamesTheRemedy(t *testing.T) {
	err := generate(t.TempDir(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "run `make crds`") {
		t.Errorf("error of a checkout without controller-gen: %v", err)
	}
}

func TestRuleForAFieldThatIsGone(t *testing.T) {
	_, err := refineText([]byte(`
spec:
  names: {kind: NodeClaim}
  versions:
  - schema: {openAPIV3Schema: {properties: {spec: {properties: {}}}}}
`))
	if err == nil || err.Error() != `no "taints" on the way to spec.taints[].key` {
		t.Errorf("error: %v", err)
	}
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[e.Name()] = string(text)
	}
	return texts
}
