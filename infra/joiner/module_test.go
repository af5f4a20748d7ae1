package joiner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherModuleSynthesizes: a CDK app in a module of its own requires this one, compiles, and gets the stack.
func TestAnotherModuleSynthesizes(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder, functions := t.TempDir(), builtFunctions()
	t.Cleanup(func() { os.RemoveAll(functions) })
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	own, requirements, found := strings.Cut(read(filepath.Join(root, "go.mod")), "\n")
	if !found || own != "module joiner" {
		t.Fatalf("go.mod begins with %q", own)
	}
	requirements, _, _ = strings.Cut(requirements, "\nignore ")
	for name, text := range map[string]string{
		"main.go": read("testdata/app/main.go"),
		"go.mod":  "module platform.example/app\n" + requirements + "\nrequire joiner v0.0.0\nreplace joiner => " + root + "\n",
		"go.sum":  read(filepath.Join(root, "go.sum")),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(folder, "cdk.out")
	run := exec.CommandContext(t.Context(), "go", "run", ".", functions)
	run.Dir = folder
	run.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "GOPROXY=off", "CDK_OUTDIR="+out)
	if said, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for name, want := range map[string]string{"joiner-prod": "joiner-prod-provision", "shared": "platform"} {
		if template := read(filepath.Join(out, name+".template.json")); !strings.Contains(template, want) {
			t.Errorf("the template of %s lacks %s", name, want)
		}
	}
}
