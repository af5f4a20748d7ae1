package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is signed is believed, and neither another byte nor another key nor another name.
func TestSignatures(t *testing.T) {
	for _, password := range []string{"", "secret\n"} {
		if password != "" && testing.Short() {
			continue // a password costs 13 CPU seconds
		}
		folder := t.TempDir()
		at := func(name string) string { return filepath.Join(folder, name) }
		o := options{generate: at("a.key")}
		if password != "" {
			o.password = at("password")
			if err := os.WriteFile(o.password, []byte(password), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sums := at("SHA256SUMS")
		if err := os.WriteFile(sums, []byte("abc  joiner\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, step := range []options{o, {generate: at("b.key")}} {
			if err := step.run(nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.run(nil); err == nil {
			t.Error("a key was overwritten")
		}
		sign := options{key: at("a.key"), password: o.password}
		if err := sign.run([]string{sums}); err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(sums + ending)
		if err != nil || !bytes.Contains(first, []byte("trusted comment: joiner SHA256SUMS")) {
			t.Errorf("signature %s, %v", first, err)
		}
		if err := (options{public: at("a.key.pub")}).run([]string{sums}); err != nil {
			t.Errorf("what was signed: %v", err)
		}
		if err := (options{public: at("b.key.pub")}).run([]string{sums}); err == nil || !strings.Contains(err.Error(), "is not what the holder of the key signed") {
			t.Errorf("another key: %v", err)
		}
		if err := os.WriteFile(sums, []byte("abd  joiner\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (options{public: at("a.key.pub")}).run([]string{sums}); err == nil || !strings.Contains(err.Error(), "use none of the files") {
			t.Errorf("another byte: %v", err)
		}
		if password != "" {
			if err := (options{key: at("a.key")}).run([]string{sums}); err == nil {
				t.Error("a key was read without its password")
			}
		}
	}
	for _, o := range []options{{}, {key: "a", public: "b"}} {
		if err := o.run([]string{"x"}); err == nil || !strings.Contains(err.Error(), "either -key to sign") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A signature that the program minisign made, of the bytes of its own documentation's example, is believed.
func TestAForeignSignature(t *testing.T) {
	const public = "untrusted comment: minisign public key\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n"
	const signature = "untrusted comment: signature from minisign secret key\n" +
		"RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n" +
		"trusted comment: timestamp:1556193335\tfile:test\n" +
		"y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==\n"
	folder := t.TempDir()
	for name, text := range map[string]string{"key.pub": public, "test": "test", "test.minisig": signature} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options{public: filepath.Join(folder, "key.pub")}
	if err := o.run([]string{filepath.Join(folder, "test")}); err != nil {
		t.Error(err)
	}
}
