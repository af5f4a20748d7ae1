package lambdahost

import (
	"archive/zip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// spawner starts processes from one thread that lives until stop. The kernel ends a child with PR_SET_PDEATHSIG when
// the thread that started it ends, so any other thread of the Go runtime will not do.
type spawner struct {
	requests chan func()
	stopped  chan struct{}
}

func startSpawner() *spawner {
	s := &spawner{requests: make(chan func()), stopped: make(chan struct{})}
	go func() {
		defer close(s.stopped)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for do := range s.requests {
			do()
		}
	}()
	return s
}

// startCommand starts the command in a process group of its own that dies with this process.
func (s *spawner) startCommand(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	done := make(chan error, 1)
	s.requests <- func() { done <- cmd.Start() }
	return <-done
}

func (s *spawner) stopSpawner() {
	close(s.requests)
	<-s.stopped
}

// codeDir gives the folder with the function's bootstrap: the asset itself, or a zip asset unpacked below scratch.
func codeDir(code, scratch, name string) (string, error) {
	info, err := os.Stat(code)
	if err != nil {
		return "", fmt.Errorf("open code: %w", err)
	}
	if info.IsDir() {
		return code, nil
	}
	dir := filepath.Join(scratch, name)
	archive, err := zip.OpenReader(code)
	if err != nil {
		return "", fmt.Errorf("open code %s: %w", code, err)
	}
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		if err := unpackFile(file, dir); err != nil {
			return "", errors.Join(err, archive.Close())
		}
	}
	return dir, archive.Close()
}

func unpackFile(file *zip.File, dir string) error {
	if !filepath.IsLocal(file.Name) {
		return fmt.Errorf("unpack %s: it leads out of the archive", file.Name)
	}
	from, err := file.Open()
	if err != nil {
		return fmt.Errorf("unpack %s: %w", file.Name, err)
	}
	defer from.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", file.Name, err)
	}
	path := filepath.Join(dir, file.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("unpack %s: %w", file.Name, err)
	}
	if err := os.WriteFile(path, text, file.Mode().Perm()); err != nil {
		return fmt.Errorf("unpack %s: %w", file.Name, err)
	}
	return nil
}

// checkBinary refuses a bootstrap that Lambda could not start, or that this machine cannot.
func checkBinary(path, architecture string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("find bootstrap: %w", err)
	}
	if info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not executable", path)
	}
	want := map[string]elf.Machine{"x86_64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[architecture]
	here := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	binary, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read bootstrap %s: %w", path, err)
	}
	machine := binary.Machine
	if err := binary.Close(); err != nil {
		return fmt.Errorf("read bootstrap %s: %w", path, err)
	}
	if machine != want {
		return fmt.Errorf("%s is built for %v, the template says %s", path, machine, architecture)
	}
	if want != here {
		return fmt.Errorf("%s is for %s, this machine runs %s: synthesize for this machine", path, architecture,
			runtime.GOARCH)
	}
	return nil
}
