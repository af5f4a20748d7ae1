package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// builder builds test binaries, each once.
type builder struct {
	folder string   // where they go
	flags  []string // of go test -c
	short  bool     // binaries run as go test -short does
	mutex  sync.Mutex
	built  map[string]string // by package: the binary
}

func newBuilder(folder string, short bool, flags ...string) *builder {
	return &builder{folder: folder, short: short, flags: flags, built: map[string]string{}}
}

// binary returns the path of the binary with the tests of a package, which is a path from the repository's root.
func (b *builder) binary(ctx context.Context, path string) (string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if ready, ok := b.built[path]; ok {
		return ready, nil
	}
	folder, err := filepath.Abs(b.folder)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	to := filepath.Join(folder, strings.ReplaceAll(path, "/", "_")+".test")
	args := append([]string{"test", "-c", "-vet=off", "-o", to}, b.flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, "./"+path)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tests of %s: %w\n%s", path, err, out)
	}
	if b.short {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' -test.short \"$@\"\n", to)
		to += "-short"
		if err := os.WriteFile(to, []byte(script), 0o755); err != nil {
			return "", fmt.Errorf("write short run of %s: %w", path, err)
		}
	}
	b.built[path] = to
	return to, nil
}
