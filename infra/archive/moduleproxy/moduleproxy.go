// Package moduleproxy writes the source of a Go module as the go command takes it from a proxy of files
// (GOPROXY=file://...). Start with Write.
package moduleproxy

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Write writes one version of a module into the proxy, from a clone of its repository. What git ignores is not in it.
func Write(proxy string, m module.Version, clone string) error {
	at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("make module: %w", err)
	}
	files, err := sourceFiles(clone)
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
	mod, err := os.ReadFile(filepath.Join(clone, "go.mod"))
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
func sourceFiles(clone string) (files []zip.File, err error) {
	var complaint bytes.Buffer
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir, list.Stderr = clone, &complaint
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w: %s: make the module in a clone", err, bytes.TrimSpace(complaint.Bytes()))
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if f := (sourceFile{clone, name}); f.exists() {
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
