package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/archive"
)

func TestTheSameBinaryGivesTheSameBytes(t *testing.T) {
	var hashes []string
	for range 2 {
		folder := filepath.Join(t.TempDir(), "provision")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "bootstrap"), bytes.Repeat([]byte("code "), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(folder, "bootstrap"), time.Now(), time.Unix(rand.Int64N(1e9), 0)); err != nil {
			t.Fatal(err)
		}
		if err := write(folder); err != nil {
			t.Fatal(err)
		}
		packed, err := os.ReadFile(folder + ".zip")
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, fmt.Sprintf("%x", sha256.Sum256(packed)))
		z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
		if err != nil {
			t.Fatal(err)
		}
		f := z.File[0]
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || len(z.File) != 1 || f.Name != "bootstrap" || f.Mode().Perm() != 0o755 || len(text) != 5000 {
			t.Errorf("%d files, %s %v with %d bytes, error %v; want one executable bootstrap of 5000", len(z.File), f.Name, f.Mode(), len(text), err)
		}
	}
	// Also the same as yesterday: what is deployed changes only with the code.
	if want := "f0f944b4fa44bb1d0817224cb2811e37360ba15e76506797a148ba853b2d9869"; hashes[0] != hashes[1] || hashes[0] != want {
		t.Errorf("hashes %v, want twice %s", hashes, want)
	}
}

func TestALargeZipIsRefused(t *testing.T) {
	folder := t.TempDir()
	noise := make([]byte, archive.MaxZipBytes+1)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(noise) // which never fails
	if err := os.WriteFile(filepath.Join(folder, "bootstrap"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(folder); err == nil || !strings.Contains(err.Error(), "more than 15000000") {
		t.Errorf("error %v", err)
	}
}
