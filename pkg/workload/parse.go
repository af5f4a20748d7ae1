package workload

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/admission"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/workload/manifest"
)

// ParseWorkload reads a workload: JSON or YAML, packed with gzip or not. The NodePools it names are not read.
func ParseWorkload(data []byte) (File, error) {
	var f File
	docs, err := manifest.ParseManifests("", data)
	switch {
	case err != nil:
		return f, err
	case len(docs) == 0:
		return f, errors.New("it holds no workload: want an object with groups, pods and nodePools")
	case len(docs) > 1:
		return f, fmt.Errorf("it holds %d documents, want one", len(docs))
	}
	text := docs[0].Body
	if err := json.Unmarshal(text, &f); err != nil {
		if where := locateField(text); where != nil {
			return f, where
		}
		return f, plainError(err)
	}
	f.setDefaults()
	f.limitDevices()
	return f, f.validateFile()
}

// podSpecs returns the specs of all pods of the file.
func (f *File) podSpecs() []*corev1.PodSpec {
	var specs []*corev1.PodSpec
	for _, list := range [][]PodGroup{f.Groups, f.DaemonSets, f.BoundGroups} {
		for i := range list {
			specs = append(specs, &list[i].Pod.Spec)
		}
	}
	for i := range f.Pods {
		specs = append(specs, &f.Pods[i].Spec)
	}
	return specs
}

// setDefaults makes every pod of the file what the API server would make of it.
func (f *File) setDefaults() {
	for _, s := range f.podSpecs() {
		admission.SetDefaults(s)
	}
}

// limitDevices limits devices and huge pages to what is requested of them where nothing is said: a workload file says
// what pods need, and what the API server wants beside that is the same.
func (f *File) limitDevices() {
	for _, s := range f.podSpecs() {
		for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
			for i := range list {
				list[i].Resources.Limits = withDevices(list[i].Resources)
			}
		}
	}
}

// withDevices are the limits with those of the requested devices that have none.
func withDevices(r corev1.ResourceRequirements) corev1.ResourceList {
	out := r.Limits
	for name, q := range r.Requests { // each on its own
		if _, limited := r.Limits[name]; !limited && !mayOvercommit(name) {
			out = lists.CopyMap(out)
			out[name] = q
		}
	}
	return out
}

// plainError words an error of the decoder for people who did not write the Go types.
func plainError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		hint := ""
		if wrong.Value == "bool" {
			hint = "; in YAML a bare n, no, off, y, yes or on is one, quote it"
		}
		return fmt.Errorf("%s: a %s does not belong here%s", wrong.Field, wrong.Value, hint)
	}
	return err
}

// locateField finds the field that the decoder refused, nil when it cannot tell.
func locateField(text []byte) error {
	type group struct {
		Name string          `json:"name"`
		Pod  json.RawMessage `json:"pod"`
	}
	var f struct {
		Groups, DaemonSets, BoundGroups []group
		Pods                            []json.RawMessage
	}
	if json.Unmarshal(text, &f) != nil {
		return nil
	}
	for _, list := range []struct {
		field string
		in    []group
	}{{"groups", f.Groups}, {"daemonSets", f.DaemonSets}, {"boundGroups", f.BoundGroups}} {
		for i, g := range list.in {
			if err := locateIn(g.Pod, &corev1.PodTemplateSpec{}); err != nil {
				return fmt.Errorf("%s[%d] (%s): pod.%w", list.field, i, g.Name, err)
			}
		}
	}
	for i, p := range f.Pods {
		if err := locateIn(p, &corev1.Pod{}); err != nil {
			return fmt.Errorf("pods[%d]: %w", i, err)
		}
	}
	return nil
}

func locateIn(raw json.RawMessage, into any) error {
	err := json.Unmarshal(raw, into)
	if len(raw) == 0 || err == nil {
		return nil
	}
	return locateAny(raw, err)
}
