// Command sign signs the checksums of a release as minisign does, so that a user needs one public key to know that the
// files are those that were made. It is here because nothing that is handed out needs its library.
//
//	go -C infra/local run ./sign -generate ~/joiner.key # once: writes joiner.key and joiner.key.pub
//	make sign KEY=~/joiner.key                          # writes SHA256SUMS.minisig, and checks it
//
// minisign -Vm SHA256SUMS -p joiner.key.pub does the last as well.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

// options are the flags of the command.
type options struct{ generate, key, password, public string }

func main() {
	var o options
	flag.StringVar(&o.generate, "generate", "", "write a new secret key to this file, and its public key beside it")
	flag.StringVar(&o.key, "key", "", "secret key to sign with")
	flag.StringVar(&o.password, "password", "", "file with the password of the secret key; without it the key has none")
	flag.StringVar(&o.public, "public", "", "public key to check with, instead of signing")
	flag.Parse()
	if err := o.run(flag.Args()); err != nil {
		log.Fatalf("sign: %v", err)
	}
}

// ending is that of a signature beside its file.
const ending = ".minisig"

func (o options) run(files []string) error {
	if o.generate != "" {
		return o.generateKey()
	}
	if len(files) == 0 || (o.key == "") == (o.public == "") {
		return errors.New("name files, and either -key to sign them or -public to check them")
	}
	for _, name := range files {
		do := o.signFile
		if o.public != "" {
			do = o.checkFile
		}
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}

// generateKey writes a key pair. It overwrites nothing: a lost key signs no release any more.
func (o options) generateKey() error {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	secret, err := private.MarshalText()
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	if o.password != "" {
		password, err := o.readPassword()
		if err != nil {
			return err
		}
		if secret, err = minisign.EncryptKey(password, private); err != nil {
			return fmt.Errorf("encrypt key: %w", err)
		}
	}
	text, err := public.MarshalText()
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	if err := writeNew(o.generate, secret); err != nil {
		return err
	}
	return writeNew(o.generate+".pub", text)
}

func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func (o options) readPassword() (string, error) {
	if o.password == "" {
		return "", nil
	}
	text, err := os.ReadFile(o.password)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// signFile writes the signature beside the file. It has the file's name and no time: the same file has the same one.
func (o options) signFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read what is signed: %w", err)
	}
	private, err := o.readKey()
	if err != nil {
		return err
	}
	signed := minisign.SignWithComments(private, text, "joiner "+filepath.Base(name), "signature of a release of Joiner")
	if err := os.WriteFile(name+ending, signed, 0o644); err != nil {
		return fmt.Errorf("write signature: %w", err)
	}
	return nil
}

func (o options) readKey() (key minisign.PrivateKey, err error) {
	text, err := os.ReadFile(o.key)
	if err != nil {
		return key, fmt.Errorf("read key: %w", err)
	}
	password, err := o.readPassword()
	if err == nil && minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(password, text)
	} else if err == nil {
		err = key.UnmarshalText(text)
	}
	if err != nil {
		return key, fmt.Errorf("read key %s: %w", o.key, err)
	}
	return key, nil
}

// checkFile fails unless the signature beside the file is of the file and the key.
func (o options) checkFile(name string) error {
	public, err := minisign.PublicKeyFromFile(o.public)
	if err != nil {
		return fmt.Errorf("read key %s: %w", o.public, err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read what is checked: %w", err)
	}
	signature, err := os.ReadFile(name + ending)
	if err != nil {
		return fmt.Errorf("read signature: %w", err)
	}
	if !minisign.Verify(public, text, signature) {
		return fmt.Errorf("%s is not what the holder of the key signed: use none of the files that it lists", name)
	}
	fmt.Println(name + " is signed by the holder of " + o.public)
	return nil
}
