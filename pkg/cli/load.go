package cli

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// readWorkload reads what is to be planned: one workload file, or manifests. Broken is how many documents cannot be
// read.
func (f planFlags) readWorkload(load instancetypes.Catalog, term terminalOutput) (w workload.File, broken int, err error) {
	files, err := f.readAll(term)
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
		more, err := (&inputs{paths: []string{f.pools}, recursive: f.recursive}).readAll(term)
		if err != nil {
			return w, 0, err
		}
		files = append(files, more...)
	}
	docs, broken, err := manifestsOf(files, term)
	if err != nil {
		return w, 0, err
	}
	w, more, err := withNodePool(f.inputs.String(), docs, load, term)
	return w, broken + more, err
}

// withNodePool makes one workload of manifests. A general-purpose NodePool stands in where they have none. Broken is
// how many objects cannot be read.
func withNodePool(name string, docs []manifest.Document, load instancetypes.Catalog, term terminalOutput) (
	w workload.File, broken int, err error) {
	docs, refused, unconverted, err := upToDate(docs, term)
	if err != nil {
		return workload.File{}, 0, err
	}
	given := slices.ContainsFunc(docs, isNodePool)
	if !given {
		own, err := manifest.ParseManifests("the general-purpose NodePool", generalPurpose)
		if err != nil {
			return workload.File{}, 0, err
		}
		docs = append(docs, own...)
	}
	docs, err = withDaemonSets(docs, term)
	if err != nil {
		return workload.File{}, 0, err
	}
	for _, n := range poolNotes(docs, load) {
		term.writeMessage("%s %s", term.paintMessage("warning:", warningColour), n)
	}
	w, broken, err = collectDocuments(name, docs, term)
	w.Refused = refused
	broken += unconverted
	switch {
	case err != nil:
		return w, broken, err
	case w.Pending() == 0 && len(w.Buffers) == 0 && len(w.Groups) > 0:
		return w, broken, fmt.Errorf("%s: nothing waits: each of the %d objects that make pods has 0 replicas", name, len(w.Groups))
	case w.Pending() == 0 && len(w.Buffers) == 0:
		return w, broken, fmt.Errorf("%s: there is no pod that waits; give manifests of Pods, Deployments and the like, too", name)
	case !given:
		term.writeMessage("there is no NodePool; a general-purpose one is taken: spot and on-demand, amd64, families c, m and r from generation 5 on; give yours with another -f")
	}
	return w, broken, nil
}

// isNodePool reports whether the document is a NodePool of Karpenter's API; others call something else so.
func isNodePool(d manifest.Document) bool {
	return d.Kind == "NodePool" && strings.HasPrefix(d.APIVersion, api.Group+"/")
}

// generalPurpose is the NodePool that manifests without one are planned with.
//
//go:embed nodepool.yaml
var generalPurpose []byte

// onEveryNode holds the DaemonSets of every node of Amazon EKS, which manifests without them are planned with.
//
//go:embed daemonsets.yaml
var onEveryNode []byte

// withDaemonSets adds the DaemonSets of Amazon EKS that are not among the objects.
func withDaemonSets(docs []manifest.Document, term terminalOutput) ([]manifest.Document, error) {
	own, err := manifest.ParseManifests("the DaemonSets of Amazon EKS", onEveryNode)
	if err != nil {
		return nil, err
	}
	var added []string
	for _, d := range own {
		if !slices.ContainsFunc(docs, func(o manifest.Document) bool { return o.Kind == d.Kind && o.Name == d.Name }) {
			docs, added = append(docs, d), append(added, d.Name)
		}
	}
	if len(added) > 0 {
		term.writeMessage("counted on every node, as Amazon EKS has them: %s; give a DaemonSet of that name to have it otherwise", strings.Join(added, ", "))
	}
	return docs, nil
}

// collectDocuments makes one workload of the objects and says what it leaves out. Those that cannot be read are told and
// left out; broken is how many.
func collectDocuments(name string, docs []manifest.Document, term terminalOutput) (w workload.File, broken int,
	err error) {
	w, notes, err := workload.CollectManifests(docs, name)
	if err != nil {
		docs, broken = leaveOut(docs, workload.Unreadable, term)
		if broken == 0 {
			return w, 0, err
		}
		w, notes, err = workload.CollectManifests(docs, name)
	}
	for _, n := range notes {
		term.writeMessage("%s", n)
	}
	return w, broken, err
}

// readChanges reads the manifests that --compare names.
func (f planFlags) readChanges(term terminalOutput) (workload.Manifests, error) {
	files, err := (&inputs{paths: []string{f.compare}, recursive: f.recursive}).readAll(term)
	if err != nil {
		return workload.Manifests{}, err
	}
	docs, broken, err := manifestsOf(files, term)
	if err == nil && broken > 0 {
		err = fmt.Errorf("%s: %d documents cannot be read", f.compare, broken)
	}
	var refused map[string]string
	if err == nil {
		docs, refused, broken, err = upToDate(docs, term)
	}
	if err == nil && broken > 0 {
		err = fmt.Errorf("%s: %d documents cannot be converted", f.compare, broken)
	}
	if err != nil {
		return workload.Manifests{}, err
	}
	w, broken, err := collectDocuments(f.compare, docs, term)
	w.Refused = refused
	if err == nil && broken > 0 {
		err = fmt.Errorf("%s: %d documents cannot be read", f.compare, broken)
	}
	switch nodes, others := len(w.Pools)+len(w.Overlays)+len(w.Classes) > 0, len(w.Buffers) > 0 || w.Devices.Any(); {
	case err != nil:
	case !nodes && !others:
		err = fmt.Errorf("%s: there is no NodePool, EC2NodeClass, NodeOverlay, CapacityBuffer or object about devices to compare with",
			f.compare)
	case others && len(f.paths) == 0:
		err = fmt.Errorf("%s: a cluster is compared with NodePools, EC2NodeClasses and NodeOverlays; leave CapacityBuffers and "+
			"objects about devices out, or plan files with -f", f.compare)
	}
	return w.Manifests, err
}
