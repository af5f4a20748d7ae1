package cli

import (
	_ "embed"
	"fmt"
	"slices"

	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// readWorkload reads what is to be planned: one workload file, or manifests. Broken is how many documents cannot be
// read.
func (f planFlags) readWorkload(sc terminalOutput) (w workload.File, broken int, err error) {
	files, err := f.readAll(sc)
	if err != nil {
		return w, 0, err
	}
	if len(files) == 1 && files[0].isWorkload() {
		open := func(path string) ([]byte, error) {
			if path == files[0].path {
				return files[0].data, nil
			}
			return readFile(path)
		}
		w, err = workload.LoadWorkload(open, files[0].path, f.pools)
		return w, 0, err
	}
	if f.pools != "" {
		more, err := (&inputs{paths: []string{f.pools}, recursive: f.recursive}).readAll(sc)
		if err != nil {
			return w, 0, err
		}
		files = append(files, more...)
	}
	docs, broken, err := manifestsOf(files, sc)
	if err == nil {
		w, err = withNodePool(f.String(), docs, sc)
	}
	return w, broken, err
}

// withNodePool makes one workload of manifests. A general-purpose NodePool stands in where they have none.
func withNodePool(name string, docs []manifest.Document, sc terminalOutput) (workload.File, error) {
	docs, err := upToDate(docs, sc)
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
	case w.Pending() == 0 && len(w.Buffers) == 0 && len(w.Groups) > 0:
		return w, fmt.Errorf("%s: nothing waits: each of the %d objects that make pods has 0 replicas", name, len(w.Groups))
	case w.Pending() == 0 && len(w.Buffers) == 0:
		return w, fmt.Errorf("%s: there is no pod that waits; give manifests of Pods, Deployments and the like, too", name)
	case !given:
		sc.writeMessage("there is no NodePool; a general-purpose one is taken: spot and on-demand, amd64, families c, m and r from generation 5 on; give yours with another -f")
	}
	return w, nil
}

// generalPurpose is the NodePool that manifests without one are planned with.
//
//go:embed nodepool.yaml
var generalPurpose []byte

// collectDocuments makes one workload of the objects and says what it leaves out.
func collectDocuments(name string, docs []manifest.Document, sc terminalOutput) (workload.File, error) {
	w, notes, err := workload.CollectManifests(docs, name)
	for _, n := range notes {
		sc.writeMessage("%s", n)
	}
	return w, err
}

// readChanges reads the manifests that --compare names.
func (f planFlags) readChanges(sc terminalOutput) (workload.Manifests, error) {
	files, err := (&inputs{paths: []string{f.compare}, recursive: f.recursive}).readAll(sc)
	if err != nil {
		return workload.Manifests{}, err
	}
	docs, broken, err := manifestsOf(files, sc)
	if err == nil && broken > 0 {
		err = fmt.Errorf("%s: %d documents cannot be read", f.compare, broken)
	}
	if err == nil {
		docs, err = upToDate(docs, sc)
	}
	if err != nil {
		return workload.Manifests{}, err
	}
	w, err := collectDocuments(f.compare, docs, sc)
	if err == nil && len(w.Pools)+len(w.Overlays)+len(w.Classes)+len(w.Buffers) == 0 {
		err = fmt.Errorf("%s: there is no NodePool, EC2NodeClass, NodeOverlay or CapacityBuffer to compare with", f.compare)
	}
	return w.Manifests, err
}
