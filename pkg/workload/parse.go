package workload

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/admission"
)

const (
	// MostBytes bounds a file, unpacked.
	MostBytes = 512 << 20
	// mostYAML bounds what is not JSON, which takes a hundred times its size in memory while it is read.
	mostYAML = 64 << 20
)

// ParseWorkload reads a workload: JSON or YAML, packed with gzip or not. The NodePools it names are not read.
func ParseWorkload(data []byte) (File, error) {
	var f File
	text, err := Gunzip(data)
	if err != nil {
		return f, err
	}
	if text, err = toJSON(text); err != nil {
		return f, err
	}
	if t := bytes.TrimSpace(text); !bytes.HasPrefix(t, []byte("{")) {
		return f, errors.New("it holds no workload: want an object with groups, pods and nodePools")
	}
	if err := json.Unmarshal(text, &f); err != nil {
		if where := locateField(text); where != nil {
			return f, where
		}
		return f, plainError(err)
	}
	f.setDefaults()
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

// splitDocuments splits a YAML stream at its separators.
func splitDocuments(text []byte) [][]byte {
	var out [][]byte
	var doc []byte
	for line := range bytes.Lines(text) {
		rest, cut := bytes.CutPrefix(line, []byte("---"))
		if rest = bytes.TrimSpace(rest); cut && (len(rest) == 0 || rest[0] == '#') {
			out, doc = append(out, doc), nil
			continue
		}
		doc = append(doc, line...)
	}
	return append(out, doc)
}

// Gunzip undoes gzip; what is not packed comes back as it is.
func Gunzip(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(zr, MostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if len(out) > MostBytes {
		return nil, fmt.Errorf("unpack: larger than %d MiB", MostBytes>>20)
	}
	return out, nil
}

// toJSON leaves JSON alone, which is much faster than taking it for YAML.
func toJSON(text []byte) ([]byte, error) {
	if t := bytes.TrimSpace(text); bytes.HasPrefix(t, []byte("{")) && json.Valid(t) {
		return t, nil
	}
	if len(text) > mostYAML {
		return nil, fmt.Errorf("neither JSON nor less than %d MiB of YAML; convert it to JSON", mostYAML>>20)
	}
	full := 0
	for _, doc := range splitDocuments(text) {
		if len(bytes.TrimSpace(doc)) > 0 {
			full++
		}
	}
	if full > 1 {
		return nil, fmt.Errorf("it holds %d YAML documents, want one", full)
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
	}
	return out, nil
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
