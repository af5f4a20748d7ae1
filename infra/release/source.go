package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// source is the code that is built.
type source struct {
	module string // its path
	folder string
	commit string // empty: the folder is no clone, or has changes
}

// findSource finds the code that this program belongs to: the module in the current folder, or the version of it that
// the go command has downloaded.
func findSource() (source, error) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return source{}, errors.New("read the build information: there is none")
	}
	s := source{module: build.Main.Path}
	if v := build.Main.Version; v != "" && v != "(devel)" && build.Main.Replace == nil {
		var found struct{ Dir, Error string }
		err := goJSON("", &found, "mod", "download", "-json", s.module+"@"+v)
		if err != nil || found.Error != "" {
			return source{}, fmt.Errorf("find the source of %s %s: %w", s.module, v,
				errors.Join(err, errors.New(found.Error)))
		}
		s.folder = found.Dir
		return s, nil
	}
	var found struct{ Dir string }
	if err := goJSON("", &found, "list", "-m", "-json", s.module); err != nil {
		return source{}, fmt.Errorf("find the source of %s: %w", s.module, err)
	}
	s.folder = found.Dir
	s.commit = readCommit(s.folder)
	return s, nil
}

// readCommit returns the commit of a clone without changes; else nothing, for then no commit has what is built.
func readCommit(folder string) string {
	changes, err := output(folder, "git", "status", "--porcelain")
	if err != nil || len(changes) > 0 {
		return ""
	}
	head, err := output(folder, "git", "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(head))
}

// functionNames are the programs below functions but the command line.
func (s source) functionNames() ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(s.folder, "functions", "*", "main.go"))
	if err != nil {
		return nil, fmt.Errorf("list functions: %w", err)
	}
	var out []string
	for _, m := range mains {
		if name := filepath.Base(filepath.Dir(m)); name != commandLine {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("list functions: %s has none", filepath.Join(s.folder, "functions"))
	}
	return out, nil
}

// linked is a package that the go command links.
type linked struct {
	ImportPath, Dir string
	Imports         []string
	Standard        bool
	Module          *module
}

// module is a Go module as the go command lists it.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// listLinked returns the packages that a program for Linux on this processor links.
func (s source) listLinked(programs ...string) ([]linked, error) {
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Imports,Standard,Module"}
	for _, p := range programs {
		args = append(args, "./"+path.Clean(p))
	}
	c := exec.Command("go", args...)
	c.Dir = s.folder
	c.Env = append(c.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "GOWORK=off", "GOFLAGS=-tags=lambda.norpc")
	text, err := outputOf(c)
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var out []linked
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p linked
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read list of packages: %w", err)
		}
		out = append(out, p)
	}
}

// goJSON reads what the go command says as JSON.
func goJSON(folder string, into any, args ...string) error {
	text, err := output(folder, "go", args...)
	if len(text) > 0 {
		err = errors.Join(err, json.Unmarshal(text, into))
	}
	return err
}

func output(folder, program string, args ...string) ([]byte, error) {
	c := exec.Command(program, args...)
	c.Dir = folder
	return outputOf(c)
}

// outputOf runs a command; the error has what it complained of.
func outputOf(c *exec.Cmd) ([]byte, error) {
	var complaint bytes.Buffer
	c.Stderr = &complaint
	text, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return text, err
}
