package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var govulncheck = flag.String("govulncheck", "", "the program, for the test with a planted vulnerability; without it that is left out")

// makeVuln runs `make vuln` with the programs of a folder, and returns what it prints and its exit code.
func makeVuln(t *testing.T, programs string, args ...string) (printed string, code int) {
	t.Helper()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^GOVULNCHECK_VERSION := (\S+)$`).FindSubmatch(makefile)
	if version == nil {
		t.Fatal("the Makefile names no GOVULNCHECK_VERSION")
	}
	if err := os.WriteFile(filepath.Join(programs, ".govulncheck-"+string(version[1])), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("make", append([]string{"--no-print-directory", "vuln", "BIN=" + programs}, args...)...)
	c.Dir = "../.."
	out, err := c.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// Whoever looks for vulnerabilities without a network is told that nothing was looked at and what to do, and no outcome
// passes but that of a look that found nothing. What govulncheck answers with: 0 found nothing, 3 found something, 1
// could not look.
func TestLookingForVulnerabilitiesSaysWhatToDo(t *testing.T) {
	for code, told := range map[int]bool{0: false, 1: true, 3: false} {
		programs := t.TempDir()
		script := fmt.Sprintf("#!/bin/sh\necho asked \"$@\"\nexit %d\n", code)
		if err := os.WriteFile(filepath.Join(programs, "govulncheck"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		out, failed := makeVuln(t, programs, "VULNDB=file:///copy")
		if (failed != 0) != (code != 0) {
			t.Errorf("govulncheck ends with %d, make with %d", code, failed)
		}
		if !strings.Contains(out, "asked -db file:///copy ./functions/...") {
			t.Errorf("it was not asked about the copy:\n%s", out)
		}
		if strings.Contains(out, "Nothing was looked at") != told || strings.Contains(out, "make vuln VULNDB=file:///folder") != told {
			t.Errorf("govulncheck ends with %d:\n%s", code, out)
		}
	}
}

// A vulnerability in what the functions call is found, in a copy of the database as `make vuln` is told to use it: one
// is planted in the function that starts every handler. Another, in a function that nobody calls, is not reported.
func TestAPlantedVulnerabilityIsFound(t *testing.T) {
	if *govulncheck == "" {
		t.Skip("make vuln-test runs it")
	}
	for symbol, found := range map[string]bool{"Start": true, "StartHandlerThatIsNotThere": false} {
		db := t.TempDir()
		const id, module = "GO-2026-9999", "github.com/aws/aws-lambda-go"
		entry := fmt.Sprintf(`{"schema_version":"1.3.1","id":%q,"modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z",
			"summary":"planted","affected":[{"package":{"name":%q,"ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
			"ecosystem_specific":{"imports":[{"path":"%s/lambda","symbols":[%q]}]}}]}`, id, module, module, symbol)
		for name, text := range map[string]string{
			"index/db.json":      `{"modified":"2026-01-01T00:00:00Z"}`,
			"index/modules.json": fmt.Sprintf(`[{"path":%q,"vulns":[{"id":%q,"modified":"2026-01-01T00:00:00Z"}]}]`, module, id),
			"index/vulns.json":   fmt.Sprintf(`[{"id":%q,"modified":"2026-01-01T00:00:00Z"}]`, id),
			"ID/" + id + ".json": entry,
		} {
			file := filepath.Join(db, name)
			err := os.MkdirAll(filepath.Dir(file), 0o755)
			if err == nil {
				err = os.WriteFile(file, []byte(text), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		programs := t.TempDir()
		if err := os.Symlink(*govulncheck, filepath.Join(programs, "govulncheck")); err != nil {
			t.Fatal(err)
		}
		out, failed := makeVuln(t, programs, "VULNDB=file://"+db)
		if (failed != 0) != found || strings.Contains(out, id) != found && found {
			t.Errorf("planted in %s: make ends with %d\n%s", symbol, failed, out)
		}
	}
}
