package awsemulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"joiner.sh/infra/local/awsemulator/wire"
)

// Provisioner makes and deletes in an account what CloudFormation's own role does. Errors are of type *wire.Failure,
// with the code of the service that refuses.
type Provisioner struct{ Cloud *Cloud }

// CreateRole makes a role of that path and name, and returns its ARN. IAM refuses a name that is taken.
func (p Provisioner) CreateRole(pathAndName string) (string, error) {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if name := roleName(pathAndName); c.roles[name] != nil {
		return "", wire.Fail(409, "EntityAlreadyExists", "Role with name %s already exists.", name)
	}
	return c.putRole(pathAndName).ARN, nil
}

// DeleteRole deletes a role. IAM refuses it while an instance profile holds the role.
func (p Provisioner) DeleteRole(name string) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.findRole(name); err != nil {
		return err
	}
	for _, holder := range c.profiles {
		if holder.Role == name {
			return wire.Fail(409, "DeleteConflict",
				"Cannot delete entity, must remove roles from instance profile first.")
		}
	}
	delete(c.roles, name)
	return nil
}

// CreateProfile makes an instance profile of the path (/ or /a/) that holds the role.
func (p Provisioner) CreateProfile(path, name, role string) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profiles[name] != nil {
		return wire.Fail(409, "EntityAlreadyExists", "Instance Profile %s already exists.", name)
	}
	if _, err := c.findRole(role); err != nil {
		return err
	}
	c.newProfile(name, path, nil).Role = role
	return nil
}

// DeleteProfile deletes an instance profile after taking its role out, as CloudFormation does.
func (p Provisioner) DeleteProfile(name string) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.findProfile(name); err != nil {
		return err
	}
	delete(c.profiles, name)
	return nil
}

// CreateEntry makes an access entry. EKS refuses one for a principal that has one or that IAM does not know, and any
// where the cluster's authentication mode knows none.
func (p Provisioner) CreateEntry(e AccessEntry) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cluster.mode == "CONFIG_MAP" {
		return wire.Fail(400, "InvalidRequestException",
			"The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.")
	}
	if _, there := c.entries[e.PrincipalARN]; there {
		return wire.Fail(409, "ResourceInUseException",
			"The specified access entry resource is already in use on this cluster.")
	}
	if r := c.roles[roleName(e.PrincipalARN)]; r == nil || r.ARN != e.PrincipalARN {
		return wire.Fail(400, "InvalidParameterException",
			"The specified principalArn is invalid: invalid principal.")
	}
	c.putEntry(e)
	return nil
}

// DeleteEntry deletes an access entry. Whoever went by it is refused from then on.
func (p Provisioner) DeleteEntry(principalARN string) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.entries[principalARN]; !there {
		return wire.Fail(404, "ResourceNotFoundException", "The specified principalArn could not be found: %s.",
			principalARN)
	}
	delete(c.entries, principalARN)
	return nil
}

// CreateFunction makes a function that the account can describe. Lambda refuses a name that is taken, a role that it
// cannot assume, and a reservation that would leave the account too little.
func (p Provisioner) CreateFunction(f DescribedFunction) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.functions[f.Name]; there {
		return wire.Fail(409, "ResourceConflictException", "Function already exist: %s", f.Name)
	}
	return p.setFunction(f)
}

// UpdateFunction changes a function that is there.
func (p Provisioner) UpdateFunction(f DescribedFunction) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.functions[f.Name]; !there {
		return wire.Fail(404, "ResourceNotFoundException", "Function not found: %s", f.Name)
	}
	return p.setFunction(f)
}

func (p Provisioner) setFunction(f DescribedFunction) error {
	c := p.Cloud
	if r := c.roles[roleName(f.Role)]; r == nil || r.ARN != f.Role {
		return wire.Fail(400, "InvalidParameterValueException",
			"The role defined for the function cannot be assumed by Lambda.")
	}
	const mostKept = 100
	left := c.concurrency - f.Reserved
	for name, other := range c.functions {
		if name != f.Name {
			left -= other.Reserved
		}
	}
	if least := min(mostKept, c.concurrency); f.Reserved > 0 && left < least {
		return wire.Fail(400, "InvalidParameterValueException",
			"Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below "+
				"its minimum value of [%d].", least)
	}
	f.Environment = maps.Clone(f.Environment)
	c.functions[f.Name] = f
	return nil
}

// DeleteFunction deletes a function.
func (p Provisioner) DeleteFunction(name string) error {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.functions[name]; !there {
		return wire.Fail(404, "ResourceNotFoundException", "Function not found: %s", name)
	}
	delete(c.functions, name)
	return nil
}

// ProvisionedNames lists by name what callers and CloudFormation have made in the account and nobody has deleted: roles
// but those of services, instance profiles, access entries, functions, launch templates, and instances that are not
// ended.
func (p Provisioner) ProvisionedNames() []string {
	c := p.Cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name, r := range c.roles {
		if !strings.HasPrefix(r.Path, "/aws-service-role/") {
			out = append(out, "role "+name)
		}
	}
	for name := range c.profiles {
		out = append(out, "instance profile "+name)
	}
	for principal := range c.entries {
		out = append(out, "access entry "+roleName(principal))
	}
	for name := range c.functions {
		out = append(out, "function "+name)
	}
	for _, t := range c.lts {
		out = append(out, "launch template "+t.name)
	}
	for id, m := range c.machines {
		if m.State != "terminated" {
			out = append(out, "instance "+id)
		}
	}
	slices.Sort(out)
	return out
}

// InstanceCredentials are what the metadata service of an instance gives: those of the role in its profile. Without
// profile or role there are none.
func (p Provisioner) InstanceCredentials(id string) (aws.Credentials, error) {
	c := p.Cloud
	c.mu.Lock()
	var arn string
	if m := c.machines[id]; m != nil {
		if held := c.profiles[m.Profile]; held != nil {
			if r := c.roles[held.Role]; r != nil {
				arn = r.ARN
			}
		}
	}
	c.mu.Unlock()
	if arn == "" {
		return aws.Credentials{}, fmt.Errorf("instance %s has no role: its instance profile, or the role in it, is gone",
			id)
	}
	return c.IssueCredentials(arn, id, time.Hour), nil
}
