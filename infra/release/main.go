// Command release builds what is handed out: the functions as Lambda takes them, the command line, and what goes with
// them. Without -functions it builds everything; the same commit and the same Go give the same bytes, wherever the
// repository is. Run it in a clone:
//
//	go run ./infra/release -out .local/release
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	gomodule "golang.org/x/mod/module"

	"joiner.sh/infra/archive"
	"joiner.sh/infra/archive/moduleproxy"
	"joiner.sh/pkg/model/version"
)

// proxyFolder is a module proxy of files that has this version of the module alone.
const proxyFolder = "goproxy"

// options are the flags of the command.
type options struct {
	out       string
	functions bool
	licenses  bool
	archs     []string
	platforms []platform // of the command line and the folders
	stdout    io.Writer
}

func main() {
	o := options{stdout: os.Stdout}
	flag.StringVar(&o.out, "out", filepath.Join(".local", "release"), "folder to write to")
	flag.BoolVar(&o.functions, "functions", false, "build the functions only, as <arch>/<function>.zip in the folder")
	flag.BoolVar(&o.licenses, "licenses", false, "list the licenses of all dependencies, and build nothing")
	archs := flag.String("arch", "arm64,amd64", "processors of the functions")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "of the command line and the release folders")
	flag.Parse()
	o.archs = strings.Split(*archs, ",")
	for p := range strings.SplitSeq(*platforms, ",") {
		system, arch, _ := strings.Cut(p, "/")
		o.platforms = append(o.platforms, platform{system, arch})
	}
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
	bom, err := s.describeContents(texts)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{sbomFile: bom, licensesFile: texts.all()} {
		if err := os.WriteFile(filepath.Join(o.out, name), text, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	// Nobody then needs to ask the domain in the module's path.
	m := gomodule.Version{Path: s.module, Version: "v" + version.Number}
	if err := moduleproxy.Write(filepath.Join(o.out, proxyFolder), m, s.folder); err != nil {
		return err
	}
	if err := s.buildPlatforms(o, texts, bom); err != nil {
		return err
	}
	return writeChecksums(o.out, o.stdout)
}

// buildPlatforms writes the command line, and the folder that deploys itself, for each platform.
func (s source) buildPlatforms(o options, texts licenseList, bom []byte) error {
	license, err := os.ReadFile(filepath.Join(s.folder, "LICENSE"))
	if err != nil {
		return fmt.Errorf("read license: %w", err)
	}
	licenses := []archive.File{
		{Name: "LICENSE", Mode: 0o644, Content: license},
		{Name: licensesFile, Mode: 0o644, Content: texts.all()},
	}
	shared, err := s.sharedFiles(filepath.Join(o.out, "functions"))
	if err != nil {
		return err
	}
	shared = append(append(shared, licenses...), archive.File{Name: sbomFile, Mode: 0o644, Content: bom})
	for _, to := range o.platforms {
		program, err := s.buildCommandLine(o.out, to, licenses, o.stdout)
		if err != nil {
			return err
		}
		app, err := s.compileBytes("./infra", to, "-ldflags=-s -w")
		if err != nil {
			return err
		}
		files := append([]archive.File{
			{Name: commandLine, Mode: 0o755, Content: program},
			{Name: appProgram, Mode: 0o755, Content: app},
		}, shared...)
		if err := writeFolder(o.out, to, files, o.stdout); err != nil {
			return err
		}
	}
	return nil
}
