package awsemulator

import (
	"encoding/json"
	"slices"

	"joiner.sh/infra/local/awsemulator/wire"
	"joiner.sh/infra/local/lambdahost/pattern"
)

// DescribedRule is what EventBridge tells of a rule. Who delivers by it is Options.Events' business.
type DescribedRule struct {
	Name, ARN string
	Enabled   bool
	Pattern   string
	Targets   []string // ARNs
}

// PutRule lets EventBridge describe a rule, or describe it otherwise.
func (c *bus) PutRule(r DescribedRule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = slices.DeleteFunc(c.rules, func(was DescribedRule) bool { return was.Name == r.Name })
	c.rules = append(c.rules, r)
}

type targetInput struct {
	TargetARN string `json:"TargetArn"`
	NextToken string
}

func (c *bus) listRuleNamesByTarget(_ *call, in *targetInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{}
	for _, r := range c.rules {
		if slices.Contains(r.Targets, in.TargetARN) {
			names = append(names, r.Name)
		}
	}
	return map[string]any{"RuleNames": names}, nil
}

// findRule finds a rule. The account is locked.
func (c *bus) findRule(name string) (DescribedRule, error) {
	i := slices.IndexFunc(c.rules, func(r DescribedRule) bool { return r.Name == name })
	if i < 0 {
		return DescribedRule{}, wire.Fail(400, "ResourceNotFoundException", "Rule %s does not exist on EventBus default.", name)
	}
	return c.rules[i], nil
}

type ruleInput struct{ Name string }

func (c *bus) describeRule(_ *call, in *ruleInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.findRule(in.Name)
	if err != nil {
		return nil, err
	}
	state := map[bool]string{true: "ENABLED", false: "DISABLED"}[r.Enabled]
	return map[string]any{"Name": r.Name, "Arn": r.ARN, "State": state, "EventPattern": r.Pattern, "EventBusName": "default"}, nil
}

type ruleTargetsInput struct{ Rule string }

func (c *bus) listTargetsByRule(_ *call, in *ruleTargetsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.findRule(in.Rule)
	if err != nil {
		return nil, err
	}
	targets := []map[string]string{}
	for _, t := range r.Targets {
		targets = append(targets, map[string]string{"Id": "Target0", "Arn": t})
	}
	return map[string]any{"Targets": targets}, nil
}

type testPatternInput struct{ EventPattern, Event string }

func (c *bus) testEventPattern(_ *call, in *testPatternInput) (any, error) {
	p, err := pattern.CompilePattern([]byte(in.EventPattern))
	if err != nil {
		return nil, wire.Fail(400, "InvalidEventPatternException", "Event pattern is not valid. Reason: %v", err)
	}
	var event map[string]json.RawMessage
	if err := json.Unmarshal([]byte(in.Event), &event); err != nil {
		return nil, wire.Fail(400, "ValidationException", "Parameter Event is not valid.")
	}
	for _, field := range []string{"id", "account", "source", "time", "region", "resources", "detail-type"} { // mandatory, API_TestEventPattern
		if event[field] == nil {
			return nil, wire.Fail(400, "ValidationException", "Parameter Event is not valid: %s is missing.", field)
		}
	}
	matches, err := p.MatchEvent([]byte(in.Event))
	return map[string]any{"Result": matches}, err
}

// SetPolicy gives a function, or its alias behind a colon, a policy; empty for none.
func (c *lambda) SetPolicy(function, policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies[function] = policy
}

func (c *lambda) getPolicy(r *call) (any, error) {
	name := qualifiedName(r.pathPart(2))
	if alias := r.http.URL.Query().Get("Qualifier"); alias != "" {
		name += ":" + alias
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	policy := c.policies[name]
	if policy == "" {
		return nil, wire.Fail(404, "ResourceNotFoundException", "The resource you requested does not exist.")
	}
	return map[string]any{"Policy": policy, "RevisionId": hash16(policy)}, nil
}
