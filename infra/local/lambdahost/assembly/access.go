package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func readRole(a *Assembly, s *stack, i item) error {
	var p struct {
		Path                     string
		AssumeRolePolicyDocument json.RawMessage
		ManagedPolicyArns        []string
		Policies                 []struct {
			PolicyName     string
			PolicyDocument json.RawMessage
		}
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	name, arn := s.resourceIdentity(i)
	r := Role{
		Resource: i.Resource, Name: name, ARN: arn, Path: defaultPath(p.Path),
		Trust: p.AssumeRolePolicyDocument, ManagedPolicy: p.ManagedPolicyArns,
	}
	for _, policy := range p.Policies {
		r.Policies = append(r.Policies, Policy{Name: policy.PolicyName, Document: policy.PolicyDocument})
	}
	a.Roles = append(a.Roles, r)
	return nil
}

// readPolicy takes inline and managed policies alike: both end up as documents of the roles they name.
func readPolicy(a *Assembly, _ *stack, i item) error {
	var p struct {
		PolicyName, ManagedPolicyName string
		PolicyDocument                json.RawMessage
		Roles                         []string
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	name := p.PolicyName + p.ManagedPolicyName
	if name == "" {
		name = i.LogicalID
	}
	a.pending = append(a.pending, func(a *Assembly) error {
		for _, role := range p.Roles {
			r := a.findRole(role)
			if r == nil {
				return fmt.Errorf("%s: role %s is not in the assembly", i.LogicalID, role)
			}
			r.Policies = append(r.Policies, Policy{Name: name, Document: p.PolicyDocument})
		}
		return nil
	})
	return nil
}

func readInstanceProfile(a *Assembly, s *stack, i item) error {
	var p struct {
		Path  string
		Roles []string
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	name, arn := s.resourceIdentity(i)
	a.InstanceProfiles = append(a.InstanceProfiles, InstanceProfile{
		Resource: i.Resource, Name: name, ARN: arn, Path: defaultPath(p.Path), Roles: p.Roles,
	})
	return nil
}

func readAccessEntry(a *Assembly, _ *stack, i item) error {
	var p struct {
		ClusterName, PrincipalArn, Type, Username string
		KubernetesGroups                          []string
		AccessPolicies                            []struct{ PolicyArn string }
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	e := AccessEntry{
		Resource: i.Resource, Cluster: p.ClusterName, PrincipalARN: p.PrincipalArn, Type: p.Type,
		Username: p.Username, Groups: p.KubernetesGroups,
	}
	if e.Type == "" {
		e.Type = "STANDARD"
	}
	for _, policy := range p.AccessPolicies {
		e.Policies = append(e.Policies, policy.PolicyArn)
	}
	// EKS refuses these: non-standard entries get their rights from EKS, and system: groups are its own.
	if e.Type != "STANDARD" && len(e.Groups)+len(e.Policies) > 0 {
		return fmt.Errorf("an entry of type %s takes neither groups nor policies", e.Type)
	}
	for _, group := range e.Groups {
		if strings.HasPrefix(group, "system:") {
			return fmt.Errorf("group %s: EKS refuses groups that start with system", group)
		}
	}
	a.AccessEntries = append(a.AccessEntries, e)
	return nil
}

// attachPending does what had to wait until every resource was read.
func (a *Assembly) attachPending() error {
	var problems []error
	for _, do := range a.pending {
		problems = append(problems, do(a))
	}
	a.pending = nil
	return errors.Join(append(problems, a.deploymentErrors()...)...)
}

// FindFunction finds a function by name, ARN or partial ARN, with or without the qualifier $LATEST or an alias. Nil:
// there is none.
func (a *Assembly) FindFunction(ref string) *Function {
	for i := range a.Functions {
		f := &a.Functions[i]
		for _, name := range []string{f.Name, f.ARN, a.Place.Account + ":function:" + f.Name} {
			qualifier, qualified := strings.CutPrefix(ref, name+":")
			if ref == name || qualified && (qualifier == "$LATEST" || slices.Contains(f.Aliases, qualifier)) {
				return f
			}
		}
	}
	return nil
}

// FindQueue finds a queue by its ARN. Nil: there is none.
func (a *Assembly) FindQueue(arn string) *Queue {
	for i := range a.Queues {
		if a.Queues[i].ARN == arn {
			return &a.Queues[i]
		}
	}
	return nil
}

func (a *Assembly) queueByURL(url string) *Queue {
	for i := range a.Queues {
		if a.Queues[i].URL == url {
			return &a.Queues[i]
		}
	}
	return nil
}

func (a *Assembly) findRole(name string) *Role {
	for i := range a.Roles {
		if a.Roles[i].Name == name {
			return &a.Roles[i]
		}
	}
	return nil
}

func defaultPath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
