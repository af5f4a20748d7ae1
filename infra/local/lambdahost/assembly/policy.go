package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// statement is the part of a policy statement that the host checks: enough for who may send where, no more. Conditions
// other than aws:SourceArn are not weighed here; the emulated AWS does that for calls of the functions themselves.
type statement struct {
	Effect    string
	Action    texts
	Resource  texts
	Principal principal
	Condition map[string]map[string]texts
}

// texts is one JSON scalar or a list of them, as text.
type texts []string

// UnmarshalJSON takes both forms.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var many []any
	if json.Unmarshal(raw, &many) != nil {
		var one any
		if err := json.Unmarshal(raw, &one); err != nil {
			return fmt.Errorf("read policy: %w", err)
		}
		many = []any{one}
	}
	for _, v := range many {
		*t = append(*t, scalarText(v))
	}
	return nil
}

// principal is who a statement speaks of. Only services matter here; "*" stands for accounts.
type principal struct{ Service texts }

// UnmarshalJSON takes an object by kind of principal, or the text "*".
func (p *principal) UnmarshalJSON(raw []byte) error {
	var byKind struct{ Service texts }
	if len(raw) > 0 && raw[0] == '"' {
		return nil
	}
	if err := json.Unmarshal(raw, &byKind); err != nil {
		return fmt.Errorf("read principal: %w", err)
	}
	*p = principal(byKind)
	return nil
}

func readStatements(document json.RawMessage) ([]statement, error) {
	var d struct{ Statement json.RawMessage }
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read policy document: %w", err)
	}
	var many []statement
	if err := json.Unmarshal(d.Statement, &many); err == nil {
		return many, nil
	}
	var one statement
	if err := json.Unmarshal(d.Statement, &one); err != nil {
		return nil, fmt.Errorf("read policy statement: %w", err)
	}
	return []statement{one}, nil
}

// RoleMay reports whether the policies of a role of the assembly let it do the action on the resource.
func (a *Assembly) RoleMay(roleARN, action, resource string) bool {
	for _, r := range a.Roles {
		if r.ARN != roleARN {
			continue
		}
		for _, policy := range r.Policies {
			list, err := readStatements(policy.Document)
			if err != nil {
				return false
			}
			if slices.ContainsFunc(list, func(s statement) bool { return s.allowsAction(action, resource) }) {
				return true
			}
		}
	}
	return false
}

// RoleTrusts reports whether the service may assume the role.
func (a *Assembly) RoleTrusts(roleARN, service string) bool {
	for _, r := range a.Roles {
		if r.ARN != roleARN {
			continue
		}
		list, err := readStatements(r.Trust)
		return err == nil && slices.ContainsFunc(list, func(s statement) bool {
			return s.Effect == "Allow" && slices.Contains(s.Principal.Service, service)
		})
	}
	return false
}

// QueueAccepts reports whether the queue's own policy lets the service send on behalf of the source.
func (a *Assembly) QueueAccepts(queueARN, service, sourceARN string) bool {
	for _, q := range a.Queues {
		if q.ARN != queueARN {
			continue
		}
		for _, document := range q.Policies {
			list, err := readStatements(document)
			if err != nil {
				return false
			}
			if slices.ContainsFunc(list, func(s statement) bool {
				return s.allowsAction("sqs:SendMessage", queueARN) && slices.Contains(s.Principal.Service, service) &&
					s.fromSource(sourceARN)
			}) {
				return true
			}
		}
	}
	return false
}

func (s statement) allowsAction(action, resource string) bool {
	fits := func(value string) func(string) bool {
		return func(pattern string) bool { return MatchesWildcards(pattern, value) }
	}
	return s.Effect == "Allow" && slices.ContainsFunc(s.Action, fits(action)) &&
		slices.ContainsFunc(s.Resource, fits(resource))
}

// fromSource weighs aws:SourceArn; no such condition accepts every source.
func (s statement) fromSource(arn string) bool {
	for _, operator := range []string{"ArnEquals", "ArnLike", "StringEquals", "StringLike"} {
		wanted, ok := s.Condition[operator]["aws:SourceArn"]
		if ok && !slices.ContainsFunc(wanted, func(pattern string) bool { return MatchesWildcards(pattern, arn) }) {
			return false
		}
	}
	return true
}

// MatchesWildcards matches IAM's wildcards: * is any text, ? is one character.
func MatchesWildcards(pattern, s string) bool {
	for pattern != "" {
		switch {
		case pattern[0] == '*':
			rest := strings.TrimLeft(pattern, "*")
			for i := range len(s) + 1 {
				if MatchesWildcards(rest, s[i:]) {
					return true
				}
			}
			return false
		case s == "" || (pattern[0] != '?' && pattern[0] != s[0]):
			return false
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// CheckDeployment finds what AWS would refuse at deployment, as Load does; for whoever changed what was loaded.
func (a *Assembly) CheckDeployment() error { return errors.Join(a.deploymentErrors()...) }

// deploymentErrors finds what AWS would refuse at deployment: a function whose role may not write to its own
// dead-letter queue, and a mapping that could not work.
func (a *Assembly) deploymentErrors() []error {
	var problems []error
	for _, f := range a.Functions {
		for _, queue := range []string{f.DeadLetterARN, f.Async.OnFailureARN} {
			switch {
			case queue == "":
			case !strings.HasPrefix(queue, "arn:aws:sqs:"):
				problems = append(problems, fmt.Errorf(
					"function %s: failed events can only go to a queue here, not to %s", f.Name, queue))
			case !a.RoleMay(f.RoleARN, "sqs:SendMessage", queue):
				problems = append(problems, fmt.Errorf("function %s: its role may not sqs:SendMessage to %s", f.Name,
					queue))
			}
		}
	}
	for _, m := range a.Mappings {
		if err := a.verifyMapping(m); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.LogicalID, err))
		}
	}
	return problems
}

// Limits of Lambda for mappings from queues.
const (
	mostBatch       = 10000
	mostImmediate   = 10 // messages of a batch without a window
	leastConcurrent = 2
	mostConcurrent  = 1000
)

// verifyMapping finds what Lambda would refuse when the mapping is made.
func (a *Assembly) verifyMapping(m Mapping) error {
	q, f := a.FindQueue(m.QueueARN), a.FindFunction(m.FunctionARN)
	switch {
	case q == nil:
		return fmt.Errorf("queue %s is not in the assembly", m.QueueARN)
	case m.BatchSize < 1 || m.BatchSize > mostBatch || m.BatchSize > mostImmediate && m.Window == 0:
		return fmt.Errorf("batch of %d with a window of %s: more than %d need a window", m.BatchSize, m.Window,
			mostImmediate)
	case m.MaxConcurrency != 0 && (m.MaxConcurrency < leastConcurrent || m.MaxConcurrency > mostConcurrent):
		return fmt.Errorf("maximum concurrency of %d: %d to %d can be had", m.MaxConcurrency, leastConcurrent,
			mostConcurrent)
	case q.Visibility < f.Timeout:
		return fmt.Errorf("queue visibility timeout: %s is less than function timeout: %s", q.Visibility, f.Timeout)
	}
	for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"} {
		if !a.RoleMay(f.RoleARN, action, m.QueueARN) {
			return fmt.Errorf("the role of function %s may not %s on %s", f.Name, action, m.QueueARN)
		}
	}
	return nil
}
