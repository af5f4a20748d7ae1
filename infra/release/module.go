package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"joiner.sh/pkg/model/version"
)

// proxyFolder is a module proxy of files (GOPROXY=file://...) that has this version of the module alone.
const proxyFolder = "goproxy"

// writeModule writes the source of the Go module as the go command takes it from a proxy. Nobody then needs to ask the
// domain in its path.
func (s source) writeModule(proxy string) error {
	m := gomodule.Version{Path: s.module, Version: "v" + version.Number}
	at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("make module: %w", err)
	}
	files, err := s.sourceFiles()
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(at, m.Version+".zip"))
	if err != nil {
		return fmt.Errorf("make module: %w", err)
	}
	defer f.Close()
	if err := zip.Create(f, m, files); err != nil {
		return fmt.Errorf("make module: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("make module: %w", err)
	}
	mod, err := os.ReadFile(filepath.Join(s.folder, "go.mod"))
	if err != nil {
		return fmt.Errorf("make module: %w", err)
	}
	for name, text := range map[string]string{
		m.Version + ".mod": string(mod), m.Version + ".info": fmt.Sprintf("{%q:%q}\n", "Version", m.Version), "list": m.Version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("make module: %w", err)
		}
	}
	return nil
}

// sourceFiles are the files of the repository that belong to it.
func (s source) sourceFiles() (files []zip.File, err error) {
	names, err := output(s.folder, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w: make a release in a clone", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if f := (sourceFile{s.folder, name}); f.exists() {
			files = append(files, f)
		}
	}
	return files, nil
}

// sourceFile is one file below root.
type sourceFile struct{ root, name string }

// Path is the name in the module.
func (f sourceFile) Path() string { return f.name }

// Lstat describes the file.
func (f sourceFile) Lstat() (os.FileInfo, error) { return os.Lstat(filepath.Join(f.root, f.name)) }

// Open opens the file.
func (f sourceFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }

func (f sourceFile) exists() bool {
	_, err := f.Lstat()
	return err == nil
}
