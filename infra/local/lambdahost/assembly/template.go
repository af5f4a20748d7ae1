package assembly

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Template is one template for somebody who makes its resources one by one and knows what they answer.
type Template struct {
	Name      string // of the stack
	Resources map[string]TemplateResource

	stack stack
}

// TemplateResource is a resource as the template writes it.
type TemplateResource struct {
	Type                string
	Properties          map[string]any
	DependsOn           names
	DeletionPolicy      string
	UpdateReplacePolicy string
}

// names is one name or a list of them.
type names []string

// UnmarshalJSON takes a text or a list of texts.
func (n *names) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*n = names{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(n))
}

// Made answers Ref (as the attribute Ref) and Fn::GetAtt of a resource that exists; false for what does not exist, or
// has no such attribute.
type Made func(id, attribute string) (any, bool)

// ParseTemplate reads the template of a stack.
func ParseTemplate(name string, text []byte, place Place) (*Template, error) {
	t := &Template{Name: name, stack: stack{name: name, place: place, secrets: map[string]string{}}}
	for _, into := range []any{t, &t.stack.template} {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("parse template of stack %s: %w", name, err)
		}
	}
	t.Name = name
	return t, nil
}

// StackID is the ARN of the stack.
func (t *Template) StackID() string { return t.stack.place.stackID(t.Name) }

// RequiredResources are the resources that must exist before this one, by DependsOn and by what its properties refer
// to.
func (t *Template) RequiredResources(id string) []string {
	r := t.Resources[id]
	found := map[string]bool{}
	for _, name := range r.DependsOn {
		found[name] = true
	}
	t.noteReferences(r.Properties, found)
	delete(found, id)
	return slices.Sorted(maps.Keys(found))
}

// noteReferences notes the resources that a value refers to.
func (t *Template) noteReferences(v any, found map[string]bool) {
	note := func(name string) {
		if _, ok := t.Resources[name]; ok {
			found[name] = true
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			t.noteReferences(e, found)
		}
	case map[string]any:
		for name, argument := range v {
			text, isText := argument.(string)
			list, _ := argument.([]any)
			switch {
			case name == "Ref" && isText, name == "Fn::GetAtt" && isText:
				text, _, _ = strings.Cut(text, ".")
				note(text)
			case name == "Fn::GetAtt" && len(list) > 0:
				note(scalarText(list[0]))
			case name == "Fn::Sub" && isText:
				noteSub(text, note)
			case name == "Fn::Sub" && len(list) > 0:
				noteSub(scalarText(list[0]), note)
			}
			t.noteReferences(argument, found)
		}
	}
}

func noteSub(text string, note func(string)) {
	for _, part := range strings.Split(text, "${")[1:] {
		name, _, _ := strings.Cut(part, "}")
		name, _, _ = strings.Cut(name, ".")
		note(name)
	}
}

// KeepSecrets has secrets keep the values that they have in the template before.
func (t *Template) KeepSecrets(before *Template) { t.stack.secrets = before.stack.secrets }

// ResolveValue is the value with every intrinsic replaced, by what made answers.
func (t *Template) ResolveValue(v any, made Made) (any, error) {
	s := t.stack
	s.made = made
	return s.resolveValue(v)
}

// ResourceAttributes are the name of a new resource, as Ref, and its attributes. Where the template gives no name,
// another generation makes another one.
func (t *Template) ResourceAttributes(id string, generation int, made Made) (map[string]any, error) {
	s := t.stack
	s.made, s.generation = made, generation
	return s.knownAttributes(id, s.template.Resources[id])
}
