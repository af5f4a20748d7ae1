package cli

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// inputFile is a file that was read.
type inputFile struct {
	path string
	data []byte
}

// standardInput is the path that means it.
const standardInput = "-"

// readFile reads a file of any sort, but not one that cannot be meant.
func readFile(path string) ([]byte, error) {
	f := os.Stdin
	if path != standardInput {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	data, err := io.ReadAll(io.LimitReader(f, workload.MostBytes+1))
	if err == nil && len(data) > workload.MostBytes {
		err = fmt.Errorf("%s: larger than %d MiB; plan parts of it", path, workload.MostBytes>>20)
	}
	return data, err
}

// readAll reads the files, and of a folder its manifests in the order of their names.
func readAll(paths []string) ([]inputFile, error) {
	var out []inputFile
	for _, path := range paths {
		names, err := isWithin(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := readFile(name)
			if err != nil {
				return nil, fmt.Errorf("read file: %w", err)
			}
			out = append(out, inputFile{name, data})
		}
	}
	return out, nil
}

func isWithin(path string) ([]string, error) {
	info, err := os.Stat(path)
	if path == standardInput || err != nil || !info.IsDir() {
		return []string{path}, nil // reading it says what is wrong
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read folder: %w", err)
	}
	var out []string
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the folder has no .yaml, .yml or .json file", path)
	}
	return out, nil
}

// isManifest reports whether the file holds Kubernetes objects, and not a workload.
func (f inputFile) isManifest() bool {
	text, err := workload.Gunzip(f.data)
	if err != nil {
		return false // reading it as a workload says what is wrong
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		var head struct {
			Kind       any `json:"kind"`
			APIVersion any `json:"apiVersion"`
		}
		if json.Unmarshal(text, &head) == nil {
			return head.Kind != nil || head.APIVersion != nil
		}
	}
	return regexp.MustCompile(`(?m)^(kind|apiVersion|"kind"|"apiVersion")\s*:`).Match(text)
}

// readWorkload reads what is to be planned: one workload file, or manifests.
func (f planFlags) readWorkload(sc terminalOutput) (workload.File, error) {
	files, err := readAll(f.files)
	if err != nil {
		return workload.File{}, err
	}
	if len(files) == 1 && !files[0].isManifest() {
		open := func(path string) ([]byte, error) {
			if path == f.files[0] {
				return files[0].data, nil
			}
			return readFile(path)
		}
		return workload.LoadWorkload(open, f.files[0], f.pools)
	}
	if f.pools != "" {
		more, err := readAll([]string{f.pools})
		if err != nil {
			return workload.File{}, err
		}
		files = append(files, more...)
	}
	return withNodePool(files, sc)
}

// withNodePool makes one workload of manifests. A general-purpose NodePool stands in where they have none.
func withNodePool(files []inputFile, sc terminalOutput) (workload.File, error) {
	name, docs, err := parseFiles(files, sc)
	if err != nil {
		return workload.File{}, err
	}
	given := slices.ContainsFunc(docs, func(d manifest.Document) bool { return d.Kind == "NodePool" })
	if !given {
		own, err := manifest.ParseManifests("the general-purpose NodePool", generalPurpose)
		if err != nil {
			return workload.File{}, err
		}
		docs = append(docs, own...)
	}
	w, err := collectDocuments(name, docs, sc)
	switch {
	case err != nil:
		return w, err
	case w.Pending() == 0 && len(w.Buffers) == 0:
		return w, fmt.Errorf("%s: there is no pod that waits; give manifests of Pods, Deployments and the like, too",
			w.Name)
	case !given:
		sc.writeMessage("there is no NodePool; this one is taken, give yours with another -f:\n%s", generalPurpose)
	}
	return w, nil
}

// generalPurpose is the NodePool that manifests without one are planned with.
//
//go:embed nodepool.yaml
var generalPurpose []byte

// parseFiles reads the objects of manifests, in their present form, and joins the names of the files.
func parseFiles(files []inputFile, sc terminalOutput) (names string, docs []manifest.Document, err error) {
	var problems []error
	for _, one := range files {
		names += "," + one.path
		if !one.isManifest() {
			problems = append(problems, fmt.Errorf(
				"%s: it holds no Kubernetes objects; a workload file is planned alone", one.path))
			continue
		}
		found, err := manifest.ParseManifests(one.path, one.data)
		if err != nil {
			problems = append(problems, err)
		}
		docs = append(docs, found...)
	}
	if err := errors.Join(problems...); err != nil {
		return "", nil, err
	}
	docs, err = upToDate(docs, sc)
	return names[1:], docs, err
}

// collectDocuments makes one workload of the objects and says what it leaves out.
func collectDocuments(name string, docs []manifest.Document, sc terminalOutput) (workload.File, error) {
	w, notes, err := workload.CollectManifests(docs, name)
	for _, n := range notes {
		sc.writeMessage("%s", n)
	}
	return w, err
}

// readChanges reads the manifests that --compare names.
func readChanges(path string, sc terminalOutput) (workload.Manifests, error) {
	files, err := readAll([]string{path})
	if err != nil {
		return workload.Manifests{}, err
	}
	name, docs, err := parseFiles(files, sc)
	if err != nil {
		return workload.Manifests{}, err
	}
	w, err := collectDocuments(name, docs, sc)
	if err == nil && len(w.Pools)+len(w.Overlays)+len(w.Classes)+len(w.Buffers) == 0 {
		err = fmt.Errorf("%s: there is no NodePool, EC2NodeClass, NodeOverlay or CapacityBuffer to compare with", path)
	}
	return w.Manifests, err
}
