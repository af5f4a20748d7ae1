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
	kept      map[string]bool // type and physical id of what is only remembered
	functions map[string]Function
	endpoints map[string]string // service of the interface endpoint, by its id
	ingress   map[string][2]string
}

// Function is a Lambda function as its template has it.
type Function struct {
	Name, ARN, RoleARN string
	Environment        map[string]string
	Subnets, Groups    []string // none: outside of any VPC
}

// Functions are those that exist, by role.
func (a *Emulated) Functions() map[string]Function {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]Function{}
	for _, f := range a.functions {
		out[f.RoleARN] = f
	}
	return out
}

// Endpoint reports whether the stack's network has an interface endpoint for the service.
func (a *Emulated) Endpoint(service string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.endpoints {
		if strings.HasSuffix(s, "."+service) {
			return true
		}
	}
	return false
}

// Admits reports whether a rule of the stack's lets one security group into another.
func (a *Emulated) Admits(from []string, into string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rule := range a.ingress {
		if rule[0] == into && slices.Contains(from, rule[1]) {
			return true
		}
	}
	return false
}

func (a *Emulated) provision() awsemulator.Provisioner {
	return awsemulator.Provisioner{Cloud: a.Cloud}
}

// Left lists what exists in the account, whoever made it.
func (a *Emulated) Left() []string {
	out := a.provision().Provisioned()
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
	Environment                         struct{ Variables map[string]string }
	ReservedConcurrentExecutions        int
	VpcConfig                           struct {
		SubnetIDs        []string `json:"SubnetIds"`
		SecurityGroupIDs []string `json:"SecurityGroupIds"`
	}
	ServiceToken          string
	ServiceName           string
	GroupID               string `json:"GroupId"`
	SourceSecurityGroupID string `json:"SourceSecurityGroupId"`
	PrivateDNSEnabled     bool   `json:"PrivateDnsEnabled"`
}

func read(r Resource) (p properties, err error) {
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
	p, err := read(*r)
	if err != nil {
		return err
	}
	switch {
	case isCustom(r.Type):
		return a.custom(ctx, s, "Create", nil, r)
	case r.Type == "AWS::IAM::Role":
		_, err := a.provision().CreateRole(strings.TrimPrefix(p.Path, "/") + r.Physical)
		return err
	case r.Type == "AWS::IAM::InstanceProfile":
		if len(p.Roles) != 1 {
			return fmt.Errorf("an instance profile holds one role, not %d", len(p.Roles))
		}
		return a.provision().CreateProfile(defaultPath(p.Path), r.Physical, p.Roles[0])
	case r.Type == "AWS::EKS::AccessEntry":
		r.Physical = p.PrincipalArn + "|" + p.ClusterName
		e := awsemulator.AccessEntry{PrincipalARN: p.PrincipalArn, Type: p.Type, KubernetesGroups: p.KubernetesGroups}
		for _, policy := range p.AccessPolicies {
			e.Policies = append(e.Policies, policy.PolicyArn)
		}
		return a.provision().CreateEntry(e)
	case r.Type == "AWS::Lambda::Function":
		if err := a.provision().CreateFunction(described(*r, p)); err != nil {
			return err
		}
		a.put(*r, p)
		return nil
	case r.Type == "AWS::S3::Bucket":
		if err := a.keep(*r); err != nil {
			return err
		}
		return a.Cloud.PutBucket(r.Physical)
	}
	if err := a.keep(*r); err != nil {
		return err
	}
	a.network(*r, p)
	return nil
}

func defaultPath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func described(r Resource, p properties) awsemulator.DescribedFunction {
	return awsemulator.DescribedFunction{Name: r.Physical, Role: p.Role, State: "Active",
		Environment: p.Environment.Variables, Reserved: p.ReservedConcurrentExecutions}
}

func (a *Emulated) put(r Resource, p properties) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.functions == nil {
		a.functions = map[string]Function{}
	}
	arn, _ := r.Attributes["Arn"].(string)
	a.functions[r.Physical] = Function{Name: r.Physical, ARN: arn, RoleARN: p.Role,
		Environment: p.Environment.Variables, Subnets: p.VpcConfig.SubnetIDs, Groups: p.VpcConfig.SecurityGroupIDs}
}

// keep remembers what the emulator does not have.
func (a *Emulated) keep(r Resource) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[string]bool{}
	}
	name := r.Type + " " + r.Physical
	rule, _ := ruleOf(r.Type)
	if a.kept[name] && rule.name != "" && r.Type != "AWS::Lambda::Alias" {
		return wire.Fail(409, "AlreadyExists", "Resource of type '%s' with identifier '%s' already exists.", r.Type,
			r.Physical)
	}
	a.kept[name] = true
	return nil
}

// network notes what lets functions reach others.
func (a *Emulated) network(r Resource, p properties) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.endpoints == nil {
		a.endpoints, a.ingress = map[string]string{}, map[string][2]string{}
	}
	switch r.Type {
	case "AWS::EC2::VPCEndpoint":
		a.endpoints[r.Physical] = p.ServiceName
	case "AWS::EC2::SecurityGroupIngress":
		a.ingress[r.Physical] = [2]string{p.GroupID, p.SourceSecurityGroupID}
	}
}

// Update changes the resource in place.
func (a *Emulated) Update(ctx context.Context, s *Stack, before Resource, r *Resource) error {
	p, err := read(*r)
	if err != nil {
		return err
	}
	switch {
	case isCustom(r.Type):
		return a.custom(ctx, s, "Update", before.Properties, r)
	case r.Type == "AWS::Lambda::Function":
		if err := a.provision().UpdateFunction(described(*r, p)); err != nil {
			return err
		}
		a.put(*r, p)
	default:
		a.network(*r, p)
	}
	return nil
}

// Delete deletes the resource. What is gone already is no error.
func (a *Emulated) Delete(ctx context.Context, s *Stack, r Resource) error {
	p, err := read(r)
	if err != nil {
		return err
	}
	switch {
	case isCustom(r.Type):
		return a.custom(ctx, s, "Delete", nil, &r)
	case r.Type == "AWS::IAM::Role":
		return there(a.provision().DeleteRole(r.Physical))
	case r.Type == "AWS::IAM::InstanceProfile":
		return there(a.provision().DeleteProfile(r.Physical))
	case r.Type == "AWS::EKS::AccessEntry":
		return there(a.provision().DeleteEntry(p.PrincipalArn))
	case r.Type == "AWS::Lambda::Function":
		a.mu.Lock()
		delete(a.functions, r.Physical)
		a.mu.Unlock()
		return there(a.provision().DeleteFunction(r.Physical))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, r.Type+" "+r.Physical)
	delete(a.endpoints, r.Physical)
	delete(a.ingress, r.Physical)
	return nil
}

// there takes "not found" for done.
func there(err error) error {
	if f, ok := errors.AsType[*wire.Failure](err); ok && f.Status == 404 {
		return nil
	}
	return err
}
