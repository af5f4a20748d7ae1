package settings

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Statement is one permission of IAM that a user gives besides those that Joiner needs.
type Statement struct {
	SID        string
	Actions    []string
	Resources  []string
	Conditions map[string]map[string][]string // operator, key, values
}

// texts is a JSON text or a list of them.
type texts []string

// UnmarshalJSON takes both forms.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

// parseStatements reads a list of statements as IAM writes them. Each allows named actions on named resources, or on
// all under a condition; ok is false for everything else.
func parseStatements(text string) (out []Statement, ok bool) {
	var list []struct {
		SID       string `json:"Sid"`
		Effect    string
		Action    texts
		Resource  texts
		Condition map[string]map[string]texts
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if d.Decode(&list) != nil || d.More() || len(list) == 0 {
		return nil, false
	}
	for _, s := range list {
		one := Statement{SID: s.SID, Actions: s.Action, Resources: s.Resource}
		for operator, tests := range s.Condition {
			for key, values := range tests {
				if one.Conditions == nil {
					one.Conditions = map[string]map[string][]string{}
				}
				if one.Conditions[operator] == nil {
					one.Conditions[operator] = map[string][]string{}
				}
				one.Conditions[operator][key] = values
			}
		}
		if s.Effect != "Allow" || !one.isBounded() {
			return nil, false
		}
		out = append(out, one)
	}
	return out, true
}

// isBounded reports whether the statement names what it allows: no service as a whole, and not everything unless a
// condition says under which circumstances.
func (s Statement) isBounded() bool {
	action := regexp.MustCompile(`^[a-z0-9-]+:[A-Z][A-Za-z0-9]*\*?$|^kms:\*Grant$`)
	others := func(a string) bool { return !action.MatchString(a) }
	unbounded := func(r string) bool {
		return r == "*" && len(s.Conditions) == 0 || r != "*" && !strings.HasPrefix(r, "arn:")
	}
	return len(s.Actions) > 0 && !slices.ContainsFunc(s.Actions, others) &&
		len(s.Resources) > 0 && !slices.ContainsFunc(s.Resources, unbounded) &&
		regexp.MustCompile(`^[A-Za-z0-9]*$`).MatchString(s.SID)
}
