package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/model/admission"
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

// setDefaults makes every pod of the file what the API server would make of it.
func (f *File) setDefaults() {
	for _, list := range [][]Group{f.Groups, f.DaemonSets, f.BoundGroups} {
		for i := range list {
			admission.SetDefaults(&list[i].Pod.Spec)
		}
	}
	for i := range f.Pods {
		admission.SetDefaults(&f.Pods[i].Spec)
	}
}

// limitDevices limits devices and huge pages to what is requested of them where nothing is said: a workload file says
// what pods need, and what the API server wants beside that is the same.
func (f *File) limitDevices() {
	var specs []*corev1.PodSpec
	for _, list := range [][]Group{f.Groups, f.DaemonSets, f.BoundGroups} {
		for i := range list {
			specs = append(specs, &list[i].Pod.Spec)
		}
	}
	for i := range f.Pods {
		specs = append(specs, &f.Pods[i].Spec)
	}
	for _, s := range specs {
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
			if out = maps.Clone(out); out == nil {
				out = corev1.ResourceList{}
			}
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
	var f struct {
		Groups, DaemonSets, BoundGroups []struct {
			Name string          `json:"name"`
			Pod  json.RawMessage `json:"pod"`
		}
		Pods []json.RawMessage
	}
	if json.Unmarshal(text, &f) != nil {
		return nil
	}
	for _, list := range []struct {
		field string
		in    []struct {
			Name string          `json:"name"`
			Pod  json.RawMessage `json:"pod"`
		}
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
	if len(raw) == 0 {
		return nil
	}
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	var tree any
	if json.Unmarshal(raw, &tree) == nil {
		if bad := badQuantity(tree, ""); bad != "" {
			return errors.New(bad)
		}
	}
	return plainError(err)
}

// badQuantity looks through requests, limits and overhead for what is no quantity.
func badQuantity(tree any, path string) string {
	switch t := tree.(type) {
	case []any:
		for i, v := range t {
			if bad := badQuantity(v, fmt.Sprintf("%s[%d]", path, i)); bad != "" {
				return bad
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			at := strings.TrimPrefix(path+"."+k, ".")
			if amounts, ok := t[k].(map[string]any); ok && (k == "requests" || k == "limits" || k == "overhead") {
				for _, name := range slices.Sorted(maps.Keys(amounts)) {
					if _, err := resource.ParseQuantity(fmt.Sprint(amounts[name])); err != nil {
						return fmt.Sprintf("%s.%s: %v is no quantity; write it like 500m or 2Gi", at, name,
							amounts[name])
					}
				}
				continue
			}
			if bad := badQuantity(t[k], at); bad != "" {
				return bad
			}
		}
	}
	return ""
}
