package settings

import (
	"encoding/json"
	"fmt"
	"strings"
)

// object is an object of JSON.
type object = map[string]any

// Schema is the JSON schema of cdk.json, by which editors complete and check the keys of its context.
func Schema() ([]byte, error) {
	one := object{}
	for _, s := range AllSettings() {
		if !s.ByStack && !s.ByTests {
			one[s.Name] = s.schema()
		}
	}
	context := object{"clusters": object{
		"description": "One stack for each object. What an object does not set, the settings beside the list do.",
		"type":        "array", "minItems": 1,
		"items": object{"type": "object", "properties": one, "additionalProperties": false},
	}}
	for name, s := range one {
		context[name] = s
	}
	text, err := json.MarshalIndent(object{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"title":   "cdk.json of Joiner",
		"type":    "object",
		"properties": object{"context": object{
			"type": "object", "properties": context, "additionalProperties": false,
			// what CDK keeps there itself
			"patternProperties": object{"^@|:|^cli-": object{}},
		}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return append(text, '\n'), nil
}

func (s Setting) schema() object {
	out := object{"description": fmt.Sprintf("%s Allowed: %s.", s.Doc, s.Allowed)}
	if s.Default != "" {
		out["default"] = s.Default
	}
	texts := object{"type": "array", "items": object{"type": "string"}}
	switch s.Kind {
	case KindText:
		out["type"] = "string"
	case KindChoice:
		out["enum"] = s.choices()
	case KindWhole:
		out["type"] = []string{"integer", "string"}
	case KindNumber:
		out["type"] = []string{"number", "string"}
	case KindList:
		out["anyOf"] = []object{{"type": "string"}, texts}
	case KindPairs:
		out["anyOf"] = []object{{"type": "string"}, texts,
			{"type": "object", "additionalProperties": object{"type": "string"}}}
	case KindSwitch:
		out["anyOf"] = []object{{"type": []string{"boolean", "number", "string"}}, texts}
	case KindStatements:
		out["anyOf"] = []object{{"type": "string"}, {"type": "array", "items": object{"type": "object"}}}
	}
	return out
}

// choices are the words of a choice, and for true and false these values as well.
func (s Setting) choices() []any {
	words := strings.Split(strings.ReplaceAll(s.Allowed, " or ", ", "), ", ")
	var out []any
	for _, w := range words {
		if w == "true" || w == "false" {
			out = append(out, w == "true")
		}
		out = append(out, w)
	}
	return out
}
