package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// Request is one question: may this role do the action on the resource.
type Request struct {
	Role     string              // ARN
	Action   string              // such as ec2:CreateFleet
	Resource string              // ARN, or * for actions that know none
	Keys     map[string][]string // condition keys of the request, such as aws:RequestTag/team
}

// Policies are what a set of roles may do. They do not change and may be used by several goroutines.
type Policies struct{ roles map[string]role }

type role struct {
	statements []statement
	managed    []string // ARNs of policies whose content is not known here
}

// Of reads the policies of roles. The error names every part of them that is not understood.
func Of(roles []assembly.Role) (*Policies, error) {
	p := &Policies{roles: map[string]role{}}
	var problems []error
	for _, r := range roles {
		read := role{managed: r.ManagedPolicy}
		for _, policy := range r.Policies {
			statements, err := parseDocument(policy.Document)
			if err != nil {
				problems = append(problems, fmt.Errorf("read policy %s of role %s: %w", policy.Name, r.Name, err))
			}
			read.statements = append(read.statements, statements...)
		}
		p.roles[r.ARN] = read
	}
	return p, errors.Join(problems...)
}

// Denied is the refusal of a request, in the words that IAM uses.
type Denied struct{ Why string }

// Error is the reason.
func (d *Denied) Error() string { return d.Why }

// Decide returns the sid of the statement that allows the request. A refusal is a *Denied: an explicit Deny beats every
// Allow, and what nothing allows is denied.
func (p *Policies) Decide(r Request) (sid string, err error) {
	known, ok := p.roles[r.Role]
	if !ok {
		return "", &Denied{"because the role is none of the stack's"}
	}
	r.Keys = lowerKeys(r.Keys)
	allowed := false
	for _, s := range known.statements {
		if !s.coversRequest(r) {
			continue
		}
		if s.deny {
			return "", &Denied{"with an explicit deny in an identity-based policy (" + s.sid + ")"}
		}
		if !allowed {
			allowed, sid = true, s.sid
		}
	}
	if allowed {
		return sid, nil
	}
	why := "because no identity-based policy allows the " + r.Action + " action"
	if len(known.managed) > 0 {
		why += fmt.Sprintf(" (the content of %s is not known here)", strings.Join(known.managed, ", "))
	}
	return "", &Denied{why}
}

// statement is one statement, ready to be weighed.
type statement struct {
	sid       string
	deny      bool
	actions   []string // lower case
	resources []string
	when      []test
}

func (s statement) coversRequest(r Request) bool {
	return anyOf(s.actions, func(a string) bool { return assembly.MatchesWildcards(a, strings.ToLower(r.Action)) }) &&
		anyOf(s.resources, func(p string) bool { return arnLike(p, r.Resource) }) &&
		allOf(s.when, func(t test) bool { return t.matchesKeys(r.Keys) })
}

// document is a policy as it is written.
type document struct {
	Version   string
	ID        string `json:"Id"`
	Statement oneOrMany[written]
}

type written struct {
	Sid, Effect      string
	Action, Resource oneOrMany[string]
	Condition        map[string]map[string]oneOrMany[any]
}

// oneOrMany is a list that may be written as its only element.
type oneOrMany[T any] []T

// UnmarshalJSON takes both forms. A field that is not known is an error.
func (l *oneOrMany[T]) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return decodeStrict(raw, (*[]T)(l))
	}
	var one T
	if err := decodeStrict(raw, &one); err != nil {
		return err
	}
	*l = []T{one}
	return nil
}

func decodeStrict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func parseDocument(raw []byte) ([]statement, error) {
	var d document
	if err := decodeStrict(raw, &d); err != nil {
		return nil, err
	}
	if d.Version != "2012-10-17" {
		return nil, fmt.Errorf("version %q is not known here", d.Version)
	}
	var out []statement
	var problems []error
	for i, w := range d.Statement {
		s, err := w.parseStatement()
		if err != nil {
			problems = append(problems, fmt.Errorf("statement %d %s: %w", i+1, w.Sid, err))
		}
		out = append(out, s)
	}
	return out, errors.Join(problems...)
}

func (w written) parseStatement() (statement, error) {
	s := statement{sid: w.Sid, deny: w.Effect == "Deny", resources: w.Resource}
	if w.Effect != "Allow" && w.Effect != "Deny" {
		return s, fmt.Errorf("effect %q", w.Effect)
	}
	if len(w.Action) == 0 || len(w.Resource) == 0 {
		return s, errors.New("action and resource are needed")
	}
	for _, a := range w.Action {
		if a != "*" && strings.Count(a, ":") != 1 {
			return s, fmt.Errorf("action %q is not of the form service:action", a)
		}
		s.actions = append(s.actions, strings.ToLower(a))
	}
	for _, r := range w.Resource {
		if r != "*" && (!strings.HasPrefix(r, "arn:") || strings.Count(r, ":") < 5) {
			return s, fmt.Errorf("resource %q is no ARN", r)
		}
		if strings.Contains(r, "${") {
			return s, fmt.Errorf("resource %q: policy variables are not known here", r)
		}
	}
	var problems []error
	for operator, keys := range w.Condition {
		for key, values := range keys {
			t, err := newTest(operator, key, values)
			if err != nil {
				problems = append(problems, err)
			}
			s.when = append(s.when, t)
		}
	}
	return s, errors.Join(problems...)
}

// arnLike compares ARNs part by part, so that a wildcard does not reach over a colon, except in the last part.
func arnLike(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	const parts = 6
	want, have := strings.SplitN(pattern, ":", parts), strings.SplitN(arn, ":", parts)
	if len(want) != parts || len(have) != parts {
		return false
	}
	for i := range want {
		if !assembly.MatchesWildcards(want[i], have[i]) {
			return false
		}
	}
	return true
}

func anyOf[T any](list []T, ok func(T) bool) bool {
	for _, v := range list {
		if ok(v) {
			return true
		}
	}
	return false
}

func allOf[T any](list []T, ok func(T) bool) bool {
	return !anyOf(list, func(v T) bool { return !ok(v) })
}
