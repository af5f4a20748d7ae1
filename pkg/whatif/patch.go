package whatif

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

// op is a step of writing an edit into an object.
type op struct {
	do    opKind
	path  []string // keys, indices, and [key=value,...] for an element of a list
	value any
}

type opKind int

const (
	replaceValue opKind = iota
	removeValue
	appendValue
	setRequirement   // value is a requirements.Requirement
	dropRequirement  // path is its key
	cutRequest       // path is the resource, value by how much
	allowDisruptions // value is how many more
)

func pathTo(base string, rest []string) []string {
	return slices.Concat(strings.Split(base, "."), rest)
}

func replaceAt(value any, base string, rest ...string) op {
	return op{do: replaceValue, path: pathTo(base, rest), value: value}
}

func removeAt(base string, rest ...string) op { return op{do: removeValue, path: pathTo(base, rest)} }

func addTo(value any, base string, rest ...string) op {
	return op{do: appendValue, path: pathTo(base, rest), value: value}
}

// Step is one operation of a JSON patch.
type Step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch writes the edit into the object, which is changed, and returns the steps as a JSON patch. Pods are at the path
// of the object's pod template, which is empty for a pod. It is an error where the object does not have what the edit
// changes.
func (e Edit) Patch(object map[string]any, template ...string) ([]Step, error) {
	if len(e.ops) == 0 {
		return nil, fmt.Errorf("%s: %s is not in an object that can be patched", e.Object(), e.Field)
	}
	w := patcher{object: object, template: template}
	for _, o := range e.ops {
		if err := w.write(o); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Object(), err)
		}
	}
	return w.steps, nil
}

// patcher writes edits into an object.
type patcher struct {
	object   map[string]any
	template []string
	steps    []Step
}

func (w *patcher) write(o op) error {
	switch o.do {
	case setRequirement, dropRequirement:
		return w.writeRequirement(o)
	case cutRequest:
		return w.cutRequest(o.path[0], o.value.(int64))
	case allowDisruptions:
		return w.allowDisruptions(o.value.(int64))
	}
	path := slices.Concat(w.template, o.path)
	last := path[len(path)-1]
	at, pointer, err := w.find(path[:len(path)-1], o.do != removeValue)
	if err != nil {
		return err
	}
	switch in := at.(type) {
	case map[string]any:
		return w.writeKey(o, in, pointer, last)
	case []any:
		i, ok := indexOf(in, last)
		if !ok || o.do != removeValue {
			break
		}
		w.steps = append(w.steps, Step{Op: "remove", Path: pointer + "/" + strconv.Itoa(i)})
		return w.set(path[:len(path)-1], slices.Delete(slices.Clone(in), i, i+1))
	}
	return fmt.Errorf("there is no %s", strings.Join(path, "."))
}

// writeKey writes one field of an object.
func (w *patcher) writeKey(o op, in map[string]any, pointer, key string) error {
	old, there := in[key]
	pointer += "/" + escapePointer(key)
	switch {
	case o.do == removeValue && !there:
		return fmt.Errorf("there is no %s", key)
	case o.do == removeValue:
		delete(in, key)
		w.steps = append(w.steps, Step{Op: "remove", Path: pointer})
	case o.do == appendValue && there:
		list, _ := old.([]any)
		in[key] = append(slices.Clone(list), o.value)
		w.steps = append(w.steps, Step{Op: "add", Path: pointer + "/-", Value: o.value})
	case o.do == appendValue:
		in[key] = []any{o.value}
		w.steps = append(w.steps, Step{Op: "add", Path: pointer, Value: []any{o.value}})
	default:
		in[key] = o.value
		w.steps = append(w.steps, Step{Op: "add", Path: pointer, Value: o.value})
	}
	return nil
}

// find is what is at the path, and its JSON pointer. Objects that are missing are made where create is true.
func (w *patcher) find(path []string, create bool) (any, string, error) {
	var at any = w.object
	pointer := ""
	for i, key := range path {
		switch in := at.(type) {
		case map[string]any:
			next, there := in[key]
			pointer += "/" + escapePointer(key)
			if !there && create {
				next = map[string]any{}
				in[key] = next
				w.steps = append(w.steps, Step{Op: "add", Path: pointer, Value: map[string]any{}})
			} else if !there {
				return nil, "", fmt.Errorf("there is no %s", strings.Join(path[:i+1], "."))
			}
			at = next
		case []any:
			n, ok := indexOf(in, key)
			if !ok {
				return nil, "", fmt.Errorf("there is no %s", strings.Join(path[:i+1], "."))
			}
			pointer += "/" + strconv.Itoa(n)
			at = in[n]
		default:
			return nil, "", fmt.Errorf("%s is no object", strings.Join(path[:i], "."))
		}
	}
	return at, pointer, nil
}

// set puts a list in the place of the one at the path.
func (w *patcher) set(path []string, list []any) error {
	at, _, err := w.find(path[:len(path)-1], false)
	if in, ok := at.(map[string]any); ok {
		in[path[len(path)-1]] = list
	}
	return err
}

// indexOf is the element that an index or [key=value,...] names.
func indexOf(list []any, key string) (int, bool) {
	if i, err := strconv.Atoi(key); err == nil {
		return i, i < len(list)
	}
	wanted, is := strings.CutPrefix(key, "[")
	if !is {
		return 0, false
	}
	i := slices.IndexFunc(list, func(x any) bool {
		o, _ := x.(map[string]any)
		for _, pair := range strings.Split(strings.TrimSuffix(wanted, "]"), ",") {
			k, v, _ := strings.Cut(pair, "=")
			if fmt.Sprint(o[k]) != v {
				return false
			}
		}
		return true
	})
	return i, i >= 0
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// writeRequirement replaces the requirements of a NodePool by those with one of them changed.
func (w *patcher) writeRequirement(o op) error {
	path := strings.Split(atRequirements, ".")
	at, pointer, err := w.find(path, false)
	if err != nil {
		return err
	}
	r, set := o.value.(requirements.Requirement)
	key := r.Key
	if !set {
		key = o.path[0]
	}
	list, _ := at.([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(x any) bool {
		entry, _ := x.(map[string]any)
		return entry["key"] == key
	})
	if set {
		body, err := json.Marshal(translate.ClaimRequirements(requirements.NewSet(r)))
		if err != nil {
			return err
		}
		var more []any
		if err := json.Unmarshal(body, &more); err != nil {
			return err
		}
		list = append(list, more...)
	}
	w.steps = append(w.steps, Step{Op: "replace", Path: pointer, Value: list})
	return w.set(path, list)
}

// cutRequest lowers the request of the container that asks for most, and with an extended resource its limit.
func (w *patcher) cutRequest(name string, by int64) error {
	spec, pointer, err := w.find(slices.Concat(w.template, []string{"spec"}), false)
	if err != nil {
		return err
	}
	in, _ := spec.(map[string]any)
	list, _ := in["containers"].([]any)
	most, at := int64(0), -1
	for i, x := range list {
		if n := requestOf(x, "requests", name); n > most {
			most, at = n, i
		}
	}
	if at < 0 || most <= by {
		return fmt.Errorf("no container asks for so much %s", name)
	}
	amounts := list[at].(map[string]any)["resources"].(map[string]any)
	to := resources.Format(name, most-by)
	for _, of := range slices.Sorted(maps.Keys(amounts)) {
		if of == "requests" || of == "limits" && requestOf(list[at], of, name) == most && stepOf(name, true) == 1 {
			amounts[of].(map[string]any)[name] = to
			w.steps = append(w.steps, Step{Op: "replace", Value: to,
				Path: fmt.Sprintf("%s/containers/%d/resources/%s/%s", pointer, at, of, escapePointer(name))})
		}
	}
	return nil
}

// requestOf is what a container requests, or is limited to.
func requestOf(container any, of, name string) int64 {
	c, _ := container.(map[string]any)
	all, _ := c["resources"].(map[string]any)
	amounts, _ := all[of].(map[string]any)
	q, err := resource.ParseQuantity(fmt.Sprint(amounts[name]))
	if amounts[name] == nil || err != nil {
		return 0
	}
	return translate.Amounts(corev1.ResourceList{corev1.ResourceName(name): q}).Get(name)
}

// allowDisruptions has a PodDisruptionBudget allow more: with fewer pods that must be there, or more that may be away.
func (w *patcher) allowDisruptions(more int64) error {
	spec, _ := w.object["spec"].(map[string]any)
	status, _ := w.object["status"].(map[string]any)
	wants, known := wholeNumber(fmt.Sprint(status["desiredHealthy"]))
	healthy, _ := wholeNumber(fmt.Sprint(status["currentHealthy"]))
	expected, _ := wholeNumber(fmt.Sprint(status["expectedPods"]))
	least := min(healthy-more, wants-more)
	if !known || least < 0 {
		return fmt.Errorf("its status tells too few healthy pods")
	}
	key, value := "minAvailable", least
	if spec["maxUnavailable"] != nil {
		key, value = "maxUnavailable", expected-least
	}
	spec[key] = value
	w.steps = append(w.steps, Step{Op: "add", Path: "/spec/" + key, Value: value})
	return nil
}
