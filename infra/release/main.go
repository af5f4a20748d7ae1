// Command release builds what is handed out: the functions as Lambda takes them, the command line, and what goes with
// them. Without -functions it builds everything; the same commit and the same Go give the same bytes, wherever the
// repository is. Run it in the repository, or elsewhere with the version that go.mod of your CDK app names:
//
//	go run ./infra/release -out .local/release
//	go run joiner.sh/infra/release@v1.0.0 -functions -arch arm64 -out functions
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// options are the flags of the command.
type options struct {
	out       string
	functions bool
	licenses  bool
	archs     []string
	stdout    io.Writer
}

func main() {
	o := options{stdout: os.Stdout}
	flag.StringVar(&o.out, "out", filepath.Join(".local", "release"), "folder to write to")
	flag.BoolVar(&o.functions, "functions", false, "build the functions only, as <arch>/<function>.zip in the folder")
	flag.BoolVar(&o.licenses, "licenses", false, "list the licenses of all dependencies, and build nothing")
	archs := flag.String("arch", "arm64,amd64", "processors of the functions")
	flag.Parse()
	o.archs = strings.Split(*archs, ",")
	if err := run(o); err != nil {
		log.Fatalf("release: %v", err)
	}
}

func run(o options) error {
	source, err := findSource()
	if err != nil {
		return err
	}
	switch {
	case o.licenses:
		_, err := listLicenses(source, o.stdout)
		return err
	case o.functions:
		return source.buildFunctions(o.out, o.archs, o.stdout)
	}
	return source.buildRelease(o)
}

// buildRelease writes everything that a release has into an empty folder.
func (s source) buildRelease(o options) error {
	if err := os.RemoveAll(o.out); err != nil {
		return fmt.Errorf("empty %s: %w", o.out, err)
	}
	texts, err := listLicenses(s, io.Discard)
	if err != nil {
		return err
	}
	if err := s.buildFunctions(filepath.Join(o.out, "functions"), o.archs, o.stdout); err != nil {
		return err
	}
	if err := s.buildCommandLine(o.out, texts, o.stdout); err != nil {
		return err
	}
	bom, err := s.describeContents(texts)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"sbom.cdx.json": bom, "LICENSES.txt": texts.all()} {
		if err := os.WriteFile(filepath.Join(o.out, name), text, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return writeChecksums(o.out, o.stdout)
}
