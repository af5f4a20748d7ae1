package joiner_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"joiner.sh/infra/archive/moduleproxy"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/testing/shortrun"
)

// modulePath is what users write after go get.
const modulePath = "joiner.sh"

// TestAnotherModuleSynthesizes: a CDK app in a module of its own requires the module as the go command downloads it,
// compiles, and gets the stack.
func TestAnotherModuleSynthesizes(t *testing.T) {
	shortrun.Skip(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder, functions := t.TempDir(), builtFunctions()
	t.Cleanup(func() { os.RemoveAll(functions) })
	_, requirements, _ := strings.Cut(read(t, filepath.Join(root, "go.mod")), "\n")
	requirements, _, _ = strings.Cut(requirements, "\nignore ")
	for name, text := range map[string]string{
		"main.go": read(t, "testdata/app/main.go"),
		"go.mod": "module platform.example/app\n" + requirements + "\nrequire " + modulePath + " v0.0.0\n" +
			"replace " + modulePath + " => " + downloadModule(t, root) + "\n",
		"go.sum": read(t, filepath.Join(root, "go.sum")),
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
		if template := read(t, filepath.Join(out, name+".template.json")); !strings.Contains(template, want) {
			t.Errorf("the template of %s lacks %s", name, want)
		}
	}
}

// downloadModule has the go command download the module from a proxy, and returns the folder of what came.
func downloadModule(t *testing.T, root string) string {
	t.Helper()
	m, proxy := module.Version{Path: modulePath, Version: "v" + version.Number}, t.TempDir()
	if err := moduleproxy.Write(proxy, m, root); err != nil {
		t.Fatal(err)
	}
	get := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.String())
	get.Dir = t.TempDir()
	get.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GOSUMDB=off", "GOFLAGS=-modcacherw",
		"GOWORK=off", "GOMODCACHE="+t.TempDir())
	said, err := get.Output()
	var got struct{ Dir, Error string }
	if wrong := json.Unmarshal(said, &got); err != nil || wrong != nil || got.Dir == "" {
		t.Fatalf("go mod download %s: %v %v\n%s", m, err, wrong, said)
	}
	return got.Dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
