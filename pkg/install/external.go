package install

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// External returns what somebody else applies where setup may not: Objects, and what setup itself may do there.
func External() ([]*unstructured.Unstructured, error) {
	all, err := Objects()
	if err != nil {
		return nil, err
	}
	own, err := objects("external")
	return slices.Concat(all, own), err
}

// ManifestText is the objects as documents of YAML, in their order.
func ManifestText(all []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range all {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// FirstDifference is the first field of what is wanted that an object does not have like that, such as
// spec.versions[0].schema; empty for none. What else the object has, the API server or somebody may have added.
func FirstDifference(want, have any) string { return differsAt(want, have, "") }

func differsAt(want, have any, path string) string {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(w)) {
			below := key
			if path != "" {
				below = path + "." + key
			}
			if at := differsAt(w[key], h[key], below); at != "" {
				return at
			}
		}
		return ""
	case []any:
		h, _ := have.([]any)
		if len(w) != len(h) {
			return path
		}
		for i := range w {
			if at := differsAt(w[i], h[i], path+"["+strconv.Itoa(i)+"]"); at != "" {
				return at
			}
		}
		return ""
	}
	if have == nil && isZero(want) || fmt.Sprint(want) == fmt.Sprint(have) {
		return ""
	}
	return path
}

// isZero reports whether the API server may leave the value out.
func isZero(v any) bool {
	return v == nil || v == "" || v == false || fmt.Sprint(v) == "0"
}
