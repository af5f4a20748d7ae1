package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"joiner.sh/infra/archive"
	"joiner.sh/infra/archive/moduleproxy"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/testing/shortrun"
)

// unpacked makes a release folder for this machine, whose functions are their names, and a checkout with the same
// functions.
func unpacked(t *testing.T) (folder, checkout string) {
	t.Helper()
	s, out := repository(t), t.TempDir()
	checkout = t.TempDir()
	here := platform{runtime.GOOS, runtime.GOARCH}
	app, err := s.compileBytes("./infra", here, "-ldflags=-s -w")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(checkout, appProgram), app, 0o755); err != nil {
		t.Fatal(err)
	}
	names, err := s.functionNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"arm64", "amd64"} {
		for _, name := range names {
			packed, err := archive.ZipFunction([]byte(arch + name))
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string][]byte{
				filepath.Join(out, "functions", arch, name+".zip"):                 packed,
				filepath.Join(checkout, ".local", "dist", arch, name, "bootstrap"): []byte(arch + name),
			} {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, content, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	shared, err := s.sharedFiles(filepath.Join(out, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	files := append(slices.Clone(shared), archive.File{Name: appProgram, Mode: 0o755, Content: app})
	if err := writeFolder(out, here, files, io.Discard); err != nil {
		t.Fatal(err)
	}
	unpack(t, filepath.Join(out, folderName(here)+".tar.gz"), out)
	return filepath.Join(out, folderName(here)), checkout
}

func unpack(t *testing.T, name, into string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(into, h.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// templates runs an app as the CDK command line does, in a folder, and returns what it writes.
func templates(t *testing.T, folder, app string, context map[string]any) map[string]string {
	t.Helper()
	context = maps.Clone(context)
	maps.Copy(context, map[string]any{"aws:cdk:enable-path-metadata": true, "aws:cdk:enable-asset-metadata": true, "aws:cdk:version-reporting": true})
	text, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	run := exec.CommandContext(t.Context(), "sh", "-c", app)
	run.Dir = folder
	run.Env = append(os.Environ(), "CDK_OUTDIR="+into, "CDK_CONTEXT_JSON="+string(text))
	if said, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", app, err, said)
	}
	out := map[string]string{}
	all, err := filepath.Glob(filepath.Join(into, "*.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = string(text)
	}
	return out
}

// A release folder is what its checksums say, and its app writes the template that a checkout writes, byte for byte.
func TestTheFolderMakesTheTemplateOfACheckout(t *testing.T) {
	shortrun.Skip(t)
	folder, checkout := unpacked(t)
	sums := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", checksumFile)
	sums.Dir = folder
	if said, err := sums.CombinedOutput(); err != nil {
		t.Errorf("sha256sum -c: %v\n%s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(folder, cdkFile))
	if err != nil {
		t.Fatal(err)
	}
	var cdk struct{ App string }
	if err := json.Unmarshal(text, &cdk); err != nil {
		t.Fatal(err)
	}
	cases := map[string]map[string]any{
		"plain": {"clusterName": "demo", "deployment": "1"},
		"much": {"clusterName": "demo", "deployment": "1", "architecture": "x86_64", "trigger": "push", "onDelete": "drain", "commitments": true,
			"vpcID": "vpc-0123456789abcdef0", "subnetIDs": []string{"subnet-0123456789abcdef0"}, "tags": map[string]string{"team": "platform"}},
		"clusters": {"deployment": "1", "mode": "observe", "clusters": []any{map[string]any{"clusterName": "blue"}, map[string]any{"clusterName": "green", "windowsNodes": true}}},
	}
	for name, context := range cases {
		got, want := templates(t, folder, cdk.App, context), templates(t, checkout, "./"+appProgram, context)
		if len(want) == 0 || !maps.Equal(got, want) {
			t.Errorf("%s: %d templates, those of a checkout differ (-checkout +release):\n%s", name, len(got), cmp.Diff(want, got))
		}
	}
}

// What the page of a folder leads to, and what the programs name, is in the folder.
func TestThePageLeadsToFilesOfTheFolder(t *testing.T) {
	files, err := repository(t).sharedFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]string{}
	for _, f := range files {
		has[f.Name] = string(f.Content)
	}
	links := regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(has["release.md"], -1)
	for _, link := range append(links, []string{"", "settings.md"}, []string{"", "CHANGELOG.md"}) {
		if has[link[1]] == "" {
			t.Errorf("%s is not in the folder", link[1])
		}
	}
}

// The same files give the same archive, whatever order they were found in.
func TestFoldersAreTheSameByteForByte(t *testing.T) {
	to := platform{"linux", "arm64"}
	files := []archive.File{{Name: "b", Mode: 0o755, Content: []byte("b")}, {Name: "a/c", Mode: 0o644, Content: []byte("c")}, {Name: cdkFile, Mode: 0o644}}
	var all [][]byte
	for range 2 {
		out := t.TempDir()
		if err := writeFolder(out, to, slices.Clone(files), io.Discard); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, folderName(to)+".tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
		slices.Reverse(files)
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("they differ")
	}
	out := t.TempDir()
	if err := writeFolder(out, to, files, io.Discard); err != nil {
		t.Fatal(err)
	}
	unpack(t, filepath.Join(out, folderName(to)+".tar.gz"), out)
	text, err := os.ReadFile(filepath.Join(out, folderName(to), checksumFile))
	if want := "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6  a/c\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"; err != nil || string(text) != want {
		t.Errorf("checksums %q, %v, want %q: not of cdk.json, which belongs to the user", text, err, want)
	}
}

// The go command takes the module from the release's own proxy, and asks nobody else for it.
func TestTheModuleComesFromFiles(t *testing.T) {
	proxy := filepath.Join(t.TempDir(), proxyFolder)
	m := gomodule.Version{Path: "joiner.sh", Version: "v" + version.Number}
	if err := moduleproxy.Write(proxy, m, repository(t).folder); err != nil {
		t.Fatal(err)
	}
	if checked, err := zip.CheckZip(m, filepath.Join(proxy, "joiner.sh", "@v", m.Version+".zip")); err != nil || len(checked.Valid) < 100 {
		t.Errorf("%d files, %v", len(checked.Valid), err)
	}
	get := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.String())
	get.Dir = t.TempDir()
	get.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GONOSUMDB=joiner.sh", "GOFLAGS=-modcacherw", "GOWORK=off", "GOMODCACHE="+t.TempDir())
	said, err := get.Output()
	var got struct{ Dir, Error, Sum string }
	if wrong := json.Unmarshal(said, &got); err != nil || wrong != nil || !strings.HasPrefix(got.Sum, "h1:") {
		t.Fatalf("go mod download: %v %v\n%s", err, wrong, said)
	}
	for name, there := range map[string]bool{"infra/joiner/joiner.go": true, "functions/provision/main.go": true, "infra/local/go.mod": false, ".local": false} {
		if _, err := os.Stat(filepath.Join(got.Dir, name)); (err == nil) != there {
			t.Errorf("%s: %v, want it there: %t", name, err, there)
		}
	}
}
