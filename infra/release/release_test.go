package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func repository(t *testing.T) source {
	t.Helper()
	s := source{folder: filepath.Join("..", "..")}
	var found struct{ Path string }
	if err := goJSON(s.folder, &found, "list", "-m", "-json"); err != nil {
		t.Fatal(err)
	}
	s.module = found.Path
	return s
}

// Every module that is handed out has a license that may be used, and its text goes with it.
func TestLicensesOfDependencies(t *testing.T) {
	var table bytes.Buffer
	list, err := listLicenses(repository(t), &table)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "Apache-2.0                   github.com/spf13/cobra v") {
		t.Errorf("no line for cobra in\n%s", table.String())
	}
	// A license of a folder within a module counts too.
	for _, want := range []string{"github.com/aws/aws-sdk-go-v2", "internal/sync/singleflight/LICENSE", "NOTICE.txt"} {
		if !bytes.Contains(list.all(), []byte(want)) {
			t.Errorf("the texts of all licenses have no %s", want)
		}
	}
}

func TestForbiddenLicensesAreNamed(t *testing.T) {
	mit, err := os.ReadFile(filepath.Join("testdata", "mit.txt"))
	if err != nil {
		t.Fatal(err)
	}
	gpl, err := os.ReadFile(filepath.Join("testdata", "agpl-notice.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // empty: it may be used
	}{
		"allowed":          {map[string]string{"LICENSE": string(mit)}, ""},
		"forbidden":        {map[string]string{"COPYING": string(gpl)}, "COPYING has the license AGPL"},
		"unknown":          {map[string]string{"LICENSE.md": "Ask us before you use this, and pay."}, "LICENSE.md is no known license"},
		"none":             {map[string]string{"README": string(mit)}, "it has no license file"},
		"a notice alone":   {map[string]string{"NOTICE": "Copyright somebody"}, "it has no license file"},
		"below":            {map[string]string{"LICENSE": string(mit), "inner/part/LICENSE": string(gpl)}, "inner/part/LICENSE has the license AGPL"},
		"beside a summary": {map[string]string{"LICENSE": string(mit), "LICENSE-SUMMARY": "Two licenses."}, "LICENSE-SUMMARY is no known license"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			inner := filepath.Join(root, "inner", "part")
			if err := os.MkdirAll(inner, 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := readLicenses([]linked{{ImportPath: "example.com/m/inner/part", Dir: inner,
				Module: &module{Path: "example.com/m", Version: "v1.2.3", Dir: root}}})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), "module example.com/m v1.2.3: "+c.want)):
				t.Errorf("error %v, want the module and %q", err, c.want)
			}
		})
	}
}

// The SBOM has each program, the modules that it links, and nothing that only tests import.
func TestContentsOfTheRelease(t *testing.T) {
	s := repository(t)
	list, err := listLicenses(s, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.describeContents(list)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.describeContents(list)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("a second time it is another SBOM, error %v", err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{s.module: true}
	for _, c := range *bom.Components {
		if refs[c.BOMRef] {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		refs[c.BOMRef] = true
		if c.Licenses == nil || len(*c.Licenses) == 0 || c.Version == "" {
			t.Errorf("%s: version %q, licenses %v", c.BOMRef, c.Version, c.Licenses)
		}
	}
	links := map[string][]string{}
	for _, d := range *bom.Dependencies {
		links[d.Ref] = *d.Dependencies
		for _, ref := range append(*d.Dependencies, d.Ref) {
			if !refs[ref] {
				t.Errorf("dependency %s of %s is no component", ref, d.Ref)
			}
		}
	}
	const cobra = "github.com/spf13/cobra"
	if !slices.Contains(links["functions/joiner"], cobra) || slices.Contains(links["functions/provision"], cobra) {
		t.Errorf("the command line links %v, provision %v; want %s in the first alone", links["functions/joiner"], links["functions/provision"], cobra)
	}
	const cdk = "github.com/aws/aws-cdk-go/awscdk/v2"
	if !slices.Contains(links[cobra], "github.com/spf13/pflag") || !slices.Contains(links["infra"], cdk) || slices.Contains(links["functions/joiner"], cdk) {
		t.Errorf("cobra links %v, the CDK app %v, the command line %v; want %s in the second alone", links[cobra], links["infra"], links["functions/joiner"], cdk)
	}
}

// The same source at two paths gives the same bytes.
func TestProgramsDoNotKnowWhereTheyWereCompiled(t *testing.T) {
	var programs [][]byte
	for range 2 {
		folder := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":  "module example.com/m\n\ngo 1.26\n",
			"main.go": "package main\n\nfunc main() { panic(\"it says where\") }\n",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(folder, "program")
		if err := compileProgram(folder, ".", out, platform{"linux", "arm64"}, "-ldflags=-s -w"); err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(program, []byte(folder)) {
			t.Errorf("the program has the path %s in it", folder)
		}
		programs = append(programs, program)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the programs differ")
	}
}

func TestChecksums(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "functions"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"functions/a.zip", "b"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeChecksums(folder, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	text, err := os.ReadFile(filepath.Join(folder, checksumFile))
	if want := abc + "  b\n" + abc + "  functions/a.zip\n"; err != nil || string(text) != want {
		t.Errorf("%v, %q, want %q", err, text, want)
	}
}
