package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/awsemulator/wire"
)

// Emulated is the account of the emulator. What the emulator does not have, such as alarms, is only remembered, and a
// name that is taken refused.
type Emulated struct {
	Cloud *awsemulator.Cloud
	// Ask has the function behind a custom resource answer.
	Ask func(ctx context.Context, function Function, ask Request) (Answer, error)

	mu        sync.Mutex
	kept      map[string]map[string]any // properties of what is only remembered, by type and physical id
	functions map[string]Function
	versions  versions
}

// Function is a Lambda function as its template has it.
type Function struct {
	Name, ARN, RoleARN string
	Code               string // key of its archive
	Environment        map[string]string
	Subnets, Groups    []string // none: outside of any VPC
}

// FunctionsByRole are those that exist, by role.
func (a *Emulated) FunctionsByRole() map[string]Function {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]Function{}
	for _, f := range a.functions {
		out[f.RoleARN] = f
	}
	return out
}

func (a *Emulated) newProvisioner() awsemulator.Provisioner {
	return awsemulator.Provisioner{Cloud: a.Cloud}
}

// LeftResources lists what exists in the account, whoever made it.
func (a *Emulated) LeftResources() []string {
	out := a.newProvisioner().ProvisionedNames()
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.kept {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// properties are what the player looks into.
type properties struct {
	RoleName, Path, InstanceProfileName string
	Roles                               []string
	ClusterName, PrincipalArn, Type     string
	KubernetesGroups                    []string
	AccessPolicies                      []struct{ PolicyArn string }
	FunctionName, Role                  string
	Code                                struct{ S3Key string }
	Environment                         struct{ Variables map[string]string }
	ReservedConcurrentExecutions        int
	VpcConfig                           struct {
		SubnetIDs        []string `json:"SubnetIds"`
		SecurityGroupIDs []string `json:"SecurityGroupIds"`
	}
	ServiceToken string
}

func readProperties(r Resource) (p properties, err error) {
	if strings.HasPrefix(r.Type, "AWS::CloudWatch::") || strings.HasPrefix(r.Type, "AWS::SNS::") ||
		strings.HasPrefix(r.Type, "AWS::SQS::") { // whose words mean something else
		return properties{}, nil
	}
	text, err := json.Marshal(r.Properties)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		err = fmt.Errorf("read properties: %w", err)
	}
	return p, err
}

// Create makes the resource.
func (a *Emulated) Create(ctx context.Context, s *Stack, r *Resource) error {
	p, err := readProperties(*r)
	if err != nil {
		return err
	}
	switch {
	case isCustom(r.Type):
		return a.invokeCustom(ctx, s, "Create", nil, r)
	case r.Type == "AWS::IAM::Role":
		_, err := a.newProvisioner().CreateRole(strings.TrimPrefix(p.Path, "/") + r.Physical)
		return err
	case r.Type == "AWS::IAM::InstanceProfile":
		if len(p.Roles) != 1 {
			return fmt.Errorf("an instance profile holds one role, not %d", len(p.Roles))
		}
		return a.newProvisioner().CreateProfile(defaultPath(p.Path), r.Physical, p.Roles[0])
	case r.Type == "AWS::EKS::AccessEntry":
		r.Physical = p.PrincipalArn + "|" + p.ClusterName
		e := awsemulator.AccessEntry{PrincipalARN: p.PrincipalArn, Type: p.Type, KubernetesGroups: p.KubernetesGroups}
		for _, policy := range p.AccessPolicies {
			e.Policies = append(e.Policies, policy.PolicyArn)
		}
		return a.newProvisioner().CreateEntry(e)
	case r.Type == "AWS::Lambda::Function":
		if err := a.newProvisioner().CreateFunction(describeFunction(*r, p)); err != nil {
			return err
		}
		a.putFunction(*r, p)
		return nil
	case r.Type == "AWS::Lambda::Version":
		if err := a.publish(r, p.FunctionName); err != nil {
			return err
		}
	case r.Type == "AWS::S3::Bucket":
		if err := a.keepResource(*r); err != nil {
			return err
		}
		return a.Cloud.PutBucket(r.Physical)
	}
	return a.keepResource(*r)
}

func defaultPath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func describeFunction(r Resource, p properties) awsemulator.DescribedFunction {
	return awsemulator.DescribedFunction{Name: r.Physical, Role: p.Role, State: "Active",
		Environment: p.Environment.Variables, Reserved: p.ReservedConcurrentExecutions}
}

func (a *Emulated) putFunction(r Resource, p properties) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.functions == nil {
		a.functions = map[string]Function{}
	}
	arn, _ := r.Attributes["Arn"].(string)
	a.versions.put(r)
	a.functions[r.Physical] = Function{Name: r.Physical, ARN: arn, RoleARN: p.Role, Code: p.Code.S3Key,
		Environment: p.Environment.Variables, Subnets: p.VpcConfig.SubnetIDs, Groups: p.VpcConfig.SecurityGroupIDs}
}

// keepResource remembers what the emulator does not have.
func (a *Emulated) keepResource(r Resource) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[string]map[string]any{}
	}
	name := r.Type + " " + r.Physical
	rule, _ := ruleOf(r.Type)
	if a.kept[name] != nil && rule.name != "" && len(rule.unique) == 0 {
		return wire.Fail(409, "AlreadyExists", "Resource of type '%s' with identifier '%s' already exists.", r.Type,
			r.Physical)
	}
	for other, properties := range a.kept {
		if strings.HasPrefix(other, r.Type+" ") && rule.sameIdentity(properties, r.Properties) {
			return wire.Fail(409, "AlreadyExists", "%s is for the same %s as %s.", name,
				strings.Join(rule.unique, " and "), other)
		}
	}
	a.kept[name] = r.Properties
	return nil
}

// changeKept gives what the emulator does not have other properties, unless somebody took it away.
func (a *Emulated) changeKept(r Resource) error {
	gone := wire.Fail(404, "NotFound", "Resource of type '%s' with identifier '%s' was not found.", r.Type, r.Physical)
	has := map[string]string{"AWS::IAM::Role": "role ", "AWS::IAM::InstanceProfile": "instance profile ",
		"AWS::EKS::AccessEntry": "access entry "}
	if word := has[r.Type]; word != "" { // what it has it does not change
		id, _, _ := strings.Cut(r.Physical[strings.LastIndex(r.Physical, "/")+1:], "|")
		if !slices.Contains(a.newProvisioner().ProvisionedNames(), word+id) {
			return gone
		}
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := r.Type + " " + r.Physical
	if a.kept[name] == nil {
		return gone
	}
	a.kept[name] = r.Properties
	return nil
}

// KeptProperties are the properties of a resource that the emulator does not have, as they are in the account; nil
// where it is gone.
func (a *Emulated) KeptProperties(kind, physical string) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept[kind+" "+physical]
}

// Update changes the resource in place.
func (a *Emulated) Update(ctx context.Context, s *Stack, before Resource, r *Resource) error {
	p, err := readProperties(*r)
	if err != nil {
		return err
	}
	switch {
	case isCustom(r.Type):
		return a.invokeCustom(ctx, s, "Update", before.Properties, r)
	case r.Type == "AWS::Lambda::Function":
		if err := a.newProvisioner().UpdateFunction(describeFunction(*r, p)); err != nil {
			return err
		}
		a.putFunction(*r, p)
	default:
		return a.changeKept(*r)
	}
	return nil
}

// Delete deletes the resource. What is gone already is no error.
func (a *Emulated) Delete(ctx context.Context, s *Stack, r Resource) error {
	p, err := readProperties(r)
	if err != nil {
		return err
	}
	switch {
	case isCustom(r.Type):
		return a.invokeCustom(ctx, s, "Delete", nil, &r)
	case r.Type == "AWS::IAM::Role":
		return ignoreNotFound(a.newProvisioner().DeleteRole(r.Physical))
	case r.Type == "AWS::IAM::InstanceProfile":
		return ignoreNotFound(a.newProvisioner().DeleteProfile(r.Physical))
	case r.Type == "AWS::EKS::AccessEntry":
		return ignoreNotFound(a.newProvisioner().DeleteEntry(p.PrincipalArn))
	case r.Type == "AWS::Lambda::Function":
		a.mu.Lock()
		delete(a.functions, r.Physical)
		a.versions.forget(r.Physical)
		a.mu.Unlock()
		return ignoreNotFound(a.newProvisioner().DeleteFunction(r.Physical))
	case r.Type == "AWS::S3::Bucket":
		if err := a.Cloud.DeleteBucket(r.Physical); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions.remove(r)
	delete(a.kept, r.Type+" "+r.Physical)
	return nil
}

// ignoreNotFound takes "not found" for done.
func ignoreNotFound(err error) error {
	if f, ok := errors.AsType[*wire.Failure](err); ok && f.Status == 404 {
		return nil
	}
	return err
}
