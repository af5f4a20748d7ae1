package manifest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
)

// Gunzip undoes gzip; what is not packed comes back as it is. It takes the memory of the result, once.
func Gunzip(data []byte) ([]byte, error) {
	tooLarge := fmt.Errorf("it is larger than %d MiB; split it", MostBytes>>20)
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if len(data) > MostBytes {
			return nil, tooLarge
		}
		return data, nil
	}
	var size uint32
	if len(data) >= 4 { // or it is cut, as the header tells
		size = binary.LittleEndian.Uint32(data[len(data)-4:]) // gzip ends in the length of what it holds
	}
	if size > MostBytes {
		return nil, tooLarge
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	// nothing packs a thousandfold
	out := bytes.NewBuffer(make([]byte, 0, min(int(size), 1100*len(data))+bytes.MinRead))
	if _, err := out.ReadFrom(io.LimitReader(zr, MostBytes+1)); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if out.Len() > MostBytes {
		return nil, tooLarge
	}
	return out.Bytes(), nil
}

// Decode reads the object into a Go value. Fields that the value does not have are returned, not refused. The error is
// an *Error that names the field where that can be found out.
func (d Document) Decode(into any) (unknown []string, err error) {
	strict, err := kjson.UnmarshalStrict(d.Body, into)
	if err != nil {
		return nil, d.decodingError(err, d.Body)
	}
	for _, s := range strict {
		field, found := strings.CutPrefix(s.Error(), "unknown field ")
		if name, err := strconv.Unquote(field); found && err == nil {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}

// decodingError words an error of a decoder for people who did not write the Go types.
func (d Document) decodingError(err error, body []byte) *Error {
	var tree any
	if json.Unmarshal(body, &tree) == nil {
		if field, value := FindBadQuantity(tree, ""); field != "" {
			return d.Errorf(field, "%v is no quantity; write it like 500m or 2Gi", value)
		}
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		text := err.Error()
		// The decoder of Kubernetes has an error type of its own, and no other way to ask it for the field.
		if field, why, found := strings.Cut(strings.TrimPrefix(text, "json: cannot unmarshal "),
			" into Go struct field "); found {
			_, name, _ := strings.Cut(strings.Fields(why)[0], ".")
			return d.Errorf(name, "%s does not belong here%s", withArticle(field), decodeHint(field))
		}
		return d.Errorf("", "%s", text)
	}
	return d.Errorf(wrong.Field, "%s does not belong here%s", withArticle(wrong.Value), decodeHint(wrong.Value))
}

// withArticle puts "a" or "an" before the word for a JSON value.
func withArticle(value string) string {
	if strings.HasPrefix(value, "array") || strings.HasPrefix(value, "object") {
		return "an " + value
	}
	return "a " + value
}

func decodeHint(value string) string {
	switch value {
	case "bool":
		return "; in YAML a bare n, no, off, y, yes or on is one, quote it"
	case "number":
		return "; quote it"
	}
	return ""
}

// FindBadQuantity looks through requests, limits, overhead and sizes of volumes of an object for what is no quantity,
// and returns its field and value.
func FindBadQuantity(tree any, at string) (field string, value any) {
	switch t := tree.(type) {
	case []any:
		for i, v := range t {
			if field, value := FindBadQuantity(v, pathText(at, fmt.Sprintf("[%d]", i))); field != "" {
				return field, value
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			amounts, ok := t[k].(map[string]any)
			at := pathText(at, k)
			if size, text := t[k].(string); text && k == "volumeSize" {
				if _, err := resource.ParseQuantity(size); err != nil {
					return at, size
				}
			}
			if !ok || k != "requests" && k != "limits" && k != "overhead" {
				if field, value := FindBadQuantity(t[k], at); field != "" {
					return field, value
				}
				continue
			}
			if nested, old := amounts["resources"].(map[string]any); old { // as Provisioners have it
				amounts, at = nested, pathText(at, "resources")
			}
			for _, name := range slices.Sorted(maps.Keys(amounts)) {
				if _, err := resource.ParseQuantity(fmt.Sprint(amounts[name])); err != nil {
					return pathText(at, name), amounts[name]
				}
			}
		}
	}
	return "", nil
}

// sourceLines finds lines of a YAML or JSON document. All objects of a List share it: it is read once, when the first
// complaint asks for a line.
type sourceLines struct{ root func() *yamlv3.Node }

func newSourceLines(text []byte) *sourceLines {
	return &sourceLines{sync.OnceValue(func() *yamlv3.Node {
		var root yamlv3.Node
		if len(text) > mostYAML || yamlv3.Unmarshal(text, &root) != nil || len(root.Content) == 0 {
			return nil
		}
		return root.Content[0]
	})}
}

// Line is the line of the file on which the field stands, or the nearest that is above it and exists; that of the
// beginning when the document cannot be read. Fields are written like spec.limits.cpu and spec.taints[0]; keys with
// dots are found as long as they are the last.
func (d Document) Line(field string) int {
	if d.source == nil || d.source.root() == nil {
		return d.start
	}
	return d.start + findLine(d.source.root(), pathText(d.within, field)) - 1
}

// findLine follows the path as far as it goes and returns the line it ends on.
func findLine(n *yamlv3.Node, field string) int {
	line := n.Line
	for field != "" {
		if n.Kind == yamlv3.AliasNode {
			n = n.Alias
		}
		switch n.Kind {
		case yamlv3.SequenceNode:
			index, rest, ok := strings.Cut(strings.TrimPrefix(field, "["), "]")
			i, err := strconv.Atoi(index)
			if !ok || err != nil { // decoders leave the index out: what is first will do
				for _, item := range n.Content {
					if found := findLine(item, field); found > item.Line {
						return found
					}
				}
				return line
			}
			if i < 0 || i >= len(n.Content) {
				return line
			}
			n, field = n.Content[i], strings.TrimPrefix(rest, ".")
			line = n.Line
		case yamlv3.MappingNode:
			found := false
			for i := 0; i+1 < len(n.Content) && !found; i += 2 {
				if rest, ok := strings.CutPrefix(field, n.Content[i].Value); ok &&
					(rest == "" || rest[0] == '.' || rest[0] == '[') {
					line, field, found = n.Content[i].Line, strings.TrimPrefix(rest, "."), true
					n = n.Content[i+1]
				}
			}
			if !found {
				return line
			}
		default:
			return line
		}
	}
	return line
}
