package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"joiner.sh/infra/archive"
	"joiner.sh/pkg/model/version"
)

// commandLine is the folder of the command line, and its name.
const commandLine = "joiner"

// platform is an operating system and architecture for which programs are built.
type platform struct{ os, arch string }

// compileProgram compiles a package of the source. Nothing of the machine is in the result: no path, no C compiler, no
// environment, no state of a work tree.
func compileProgram(folder, pkg, out string, to platform, flags ...string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("compile %s: %w", pkg, err)
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", out}, flags...)
	c := exec.Command("go", append(args, pkg)...)
	c.Dir = folder
	c.Env = append(c.Environ(), "CGO_ENABLED=0", "GOOS="+to.os, "GOARCH="+to.arch, "GOFLAGS=", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	_, err = outputOf(c)
	return err
}

// buildFunctions writes <arch>/<function>.zip for each function, with the same flags as make package.
func (s source) buildFunctions(out string, archs []string, report io.Writer) error {
	names, err := s.functionNames()
	if err != nil {
		return err
	}
	for _, arch := range archs {
		for _, name := range names {
			folder := filepath.Join(out, arch)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return fmt.Errorf("make folder of function %s: %w", name, err)
			}
			program, err := s.compileBytes("./functions/"+name, platform{"linux", arch},
				"-tags=lambda.norpc", "-ldflags=-s -w")
			if err != nil {
				return err
			}
			packed, err := archive.ZipFunction(program)
			if err != nil {
				return fmt.Errorf("pack %s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(folder, name+".zip"), packed, 0o644); err != nil {
				return fmt.Errorf("write function %s: %w", name, err)
			}
			fmt.Fprintf(report, "%8d KiB  %s/%s.zip\n", len(packed)/1024, folder, name)
		}
	}
	return nil
}

// buildCommandLine returns the command line for a platform, and writes an archive with it and with licenses.
func (s source) buildCommandLine(out string, to platform, licenses []archive.File, report io.Writer) ([]byte, error) {
	program, err := s.compileBytes("./functions/"+commandLine, to,
		fmt.Sprintf("-ldflags=-s -w -X %s/pkg/cli.commit=%s", s.module, s.commit))
	if err != nil {
		return nil, err
	}
	files := append([]archive.File{{Name: commandLine, Mode: 0o755, Content: program}}, licenses...)
	name := fmt.Sprintf("%s_%s_%s_%s.tar.gz", commandLine, version.Number, to.os, to.arch)
	return program, writeArchive(filepath.Join(out, name), files, report)
}

// writeArchive writes files as a compressed tar archive.
func writeArchive(name string, files []archive.File, report io.Writer) error {
	packed, err := archive.TarGzip(files)
	if err != nil {
		return fmt.Errorf("pack %s: %w", filepath.Base(name), err)
	}
	if err := os.WriteFile(name, packed, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	fmt.Fprintf(report, "%8d KiB  %s\n", len(packed)/1024, filepath.Base(name))
	return nil
}

// compileBytes is compileProgram with the program as result.
func (s source) compileBytes(pkg string, to platform, flags ...string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "joiner-release-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(temp)
	program := filepath.Join(temp, "program")
	if err := compileProgram(s.folder, pkg, program, to, flags...); err != nil {
		return nil, err
	}
	return os.ReadFile(program)
}
