package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"joiner.sh/pkg/workload/manifest"
)

// inputs are the files that a command is given.
type inputs struct {
	paths     []string
	recursive bool
}

func (in *inputs) addFlags(cmd *cobra.Command, what string) {
	cmd.Flags().StringSliceVarP(&in.paths, "file", "f", nil,
		what+"; several times or with commas between, folders and URLs too, - for standard input")
	cmd.Flags().BoolVarP(&in.recursive, "recursive", "R", false, "read the folders in folders too")
}

// String names the files as they were given.
func (in *inputs) String() string { return strings.Join(in.paths, ",") }

// inputFile is a file that was read.
type inputFile struct {
	path   string
	found  bool // in a folder: nobody named it
	data   []byte
	docs   []manifest.Document
	broken []error // of documents that cannot be read
}

// standardInput is the path that means it.
const standardInput = "-"

// readAll reads the files, and of a folder its manifests in the order of their names. The error is about a file that
// was named.
func (in *inputs) readAll(term terminalOutput) ([]inputFile, error) {
	var out []inputFile
	for _, path := range in.paths {
		names, folder, err := in.expandFolder(path, term)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			one := inputFile{path: name, found: folder}
			if one.data, err = readFile(name); err == nil {
				one.parse()
			} else if err = fmt.Errorf("read file: %w", err); folder {
				one.broken = []error{fmt.Errorf("%w; make it readable, or leave it out", err)}
			} else {
				return nil, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// parse reads the objects of the file.
func (f *inputFile) parse() {
	var err error
	if f.docs, err = manifest.ParseManifests(f.path, f.data); err == nil {
		return
	}
	if bytes.Contains(f.data, []byte("{{")) {
		err = fmt.Errorf("%w; it seems to be a template: plan what helm template prints, with -f -", err)
	}
	f.broken = []error{err}
	if all, joined := err.(interface{ Unwrap() []error }); joined {
		f.broken = all.Unwrap()
	}
}

// expandFolder lists the manifests of a folder; what is no folder stands for itself.
func (in *inputs) expandFolder(path string, term terminalOutput) (names []string, folder bool, err error) {
	info, err := os.Stat(path)
	if path == standardInput || isURL(path) || err != nil || !info.IsDir() {
		return []string{path}, false, nil // reading it says what is wrong
	}
	unread := 0
	err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && name == path:
			return err
		case err != nil:
			term.writeMessage("read folder: %v; make it readable, or leave it out", err)
			return fs.SkipDir
		case e.IsDir() && name != path && !in.recursive:
			unread++
			return fs.SkipDir
		case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, true, fmt.Errorf("read folder: %w", err)
	case len(names) == 0 && unread > 0:
		return nil, true, fmt.Errorf("%s: the folder has no .yaml, .yml or .json file; -R reads the folders in it", path)
	case len(names) == 0:
		return nil, true, fmt.Errorf("%s: the folder has no .yaml, .yml or .json file", path)
	case unread > 0:
		term.writeMessage("%s: not read: %d folders in it; -R reads them", path, unread)
	}
	return names, true, nil
}

// readFile reads a file of any sort, but not one that cannot be meant.
func readFile(path string) ([]byte, error) {
	if isURL(path) {
		return readURL(path)
	}
	f := os.Stdin
	if path != standardInput {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	return readLimited(path, f)
}

func readLimited(path string, from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, manifest.MostBytes+1))
	if err == nil && len(data) > manifest.MostBytes {
		err = fmt.Errorf("%s: larger than %d MiB; plan parts of it", path, manifest.MostBytes>>20)
	}
	if err != nil {
		return nil, err
	}
	// PowerShell writes UTF-16, editors of Windows a mark before UTF-8
	if slices.ContainsFunc([]string{"\xff\xfe", "\xfe\xff", "\xef\xbb\xbf"},
		func(mark string) bool { return bytes.HasPrefix(data, []byte(mark)) }) {
		data, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), data)
	}
	return data, err
}

func isURL(path string) bool {
	return strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://")
}

// urlTimeout is the longest time that a file of the network may take.
const urlTimeout = 30 * time.Second

func readURL(address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), urlTimeout)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the server answers %s", address, answer.Status)
	}
	return readLimited(address, answer.Body)
}

// isWorkload reports whether the file is read as a workload: it holds something, and no Kubernetes object.
func (f *inputFile) isWorkload() bool {
	return len(f.broken) == 0 && !slices.ContainsFunc(f.docs, isObject)
}

// isObject reports whether the document says that it is one.
func isObject(d manifest.Document) bool { return d.Kind != "" || d.APIVersion != "" }

// isKustomization reports whether the document tells kustomize what to build.
func isKustomization(d manifest.Document) bool {
	return strings.HasPrefix(d.APIVersion, "kustomize.config.k8s.io/") ||
		slices.Contains([]string{"kustomization.yaml", "kustomization.yml"}, filepath.Base(d.File))
}

// manifestsOf returns the objects of the files, and how many documents cannot be read; each of these was told. The
// error names files that cannot be meant.
func manifestsOf(files []inputFile, term terminalOutput) (docs []manifest.Document, broken int, err error) {
	var refused, unread []error
	for _, f := range files {
		unread = append(unread, f.broken...)
		objects := slices.ContainsFunc(f.docs, isObject)
		switch {
		case slices.ContainsFunc(f.docs, isKustomization):
			dir := filepath.Dir(f.path)
			term.writeMessage("%s: not applied, what it refers to is read as it stands; kubectl kustomize %s makes the manifests that it means, for -f -", f.path, dir)
		case objects:
			for _, d := range f.docs {
				if isObject(d) {
					docs = append(docs, d)
				} else {
					unread = append(unread, d.Errorf("", "apiVersion and kind are missing; a manifest has both"))
				}
			}
		case len(f.docs) > 0 && f.found:
			term.writeMessage("%s: skipped, it holds no Kubernetes objects", f.path)
		case len(f.docs) > 0:
			refused = append(refused, fmt.Errorf("%s: it holds no Kubernetes objects; a workload file is planned alone", f.path))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return nil, 0, err
	}
	if len(docs) == 0 && len(unread) > 0 {
		return nil, 0, errors.Join(unread...)
	}
	tellUnread(unread, term)
	return docs, len(unread), nil
}

// leaveOut returns the documents that read has no error about, and tells the others, of which it returns the number.
func leaveOut(docs []manifest.Document, read func(manifest.Document) error, term terminalOutput) (
	left []manifest.Document, broken int) {
	var unread []error
	for _, d := range docs {
		if err := read(d); err != nil {
			unread = append(unread, err)
		} else {
			left = append(left, d)
		}
	}
	tellUnread(unread, term)
	return left, len(unread)
}

// tellUnread names the documents that are left out.
func tellUnread(unread []error, term terminalOutput) {
	for _, e := range unread {
		term.writeMessage("%s %v", term.paintMessage("not read:", warningColour), e)
	}
}
