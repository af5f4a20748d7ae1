package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// checksumFile has a line for each file of a release, in the form of sha256sum.
const checksumFile = "SHA256SUMS"

func writeChecksums(folder string, report io.Writer) error {
	var lines bytes.Buffer
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error { // in the order of names
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(text), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, checksumFile), lines.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	_, err = report.Write(lines.Bytes())
	return err
}
