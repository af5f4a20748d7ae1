package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/settings"
)

const (
	// preflightCall is the longest time that one question may take: some services cannot be reached from every network.
	preflightCall = 20 * time.Second
	// mostNodePages bounds the nodes that are counted, a thousand a page.
	mostNodePages = 20
	// mostEndpointPages bounds the endpoints of a VPC that are looked at, a thousand a page.
	mostEndpointPages = 5
)

// Preflight asks what a deployment must know. It only reads, so everything may be repeated.
type Preflight struct {
	EKS    *eks.Client
	IAM    *iam.Client
	EC2    *ec2.Client
	Lambda *lambda.Client
}

// ReadFacts asks about the plan. What cannot be found out is unknown, but for the cluster itself: without that it
// fails. Denied reports that a question was refused for want of a permission, which IAM may have granted a moment ago.
func (r Preflight) ReadFacts(ctx context.Context, p preflight.StackPlan) (f preflight.Facts, denied bool, err error) {
	ask := func(topic string, question func(context.Context) error) {
		within, cancel := context.WithTimeout(ctx, preflightCall)
		defer cancel()
		if err := question(within); err != nil {
			f.Unknown = append(f.Unknown, preflight.Unknown{Topic: topic, Why: err.Error()})
			denied = denied || awserrors.IsDenied(awserrors.CodeOf(err))
		}
	}
	f.Cluster, err = DescribeAccess(ctx, r.EKS, p.Cluster)
	f.Cluster.Region, f.Cluster.Inside = p.Region, p.VPC != ""
	if err != nil {
		return f, awserrors.IsDenied(awserrors.CodeOf(err)), err
	}
	ask(preflight.TopicRoles, func(ctx context.Context) error { return r.readRoles(ctx, p, &f) })
	for _, name := range givenRoles(p) {
		ask(preflight.TopicEntries, func(ctx context.Context) error { return r.readEntry(ctx, p.Cluster, name, &f) })
	}
	if p.VPC != "" {
		ask(preflight.TopicEndpoints, func(ctx context.Context) error { return r.readEndpoints(ctx, p, &f) })
	}
	if len(p.Endpoints) > 0 {
		ask(preflight.TopicZones, func(ctx context.Context) error { return r.readZones(ctx, p, &f) })
	}
	if len(p.Subnets) > 0 {
		ask(preflight.TopicSubnets, func(ctx context.Context) error { return r.readSubnets(ctx, p, &f) })
	}
	if p.VPC != "" && len(p.Subnets) > 0 {
		ask(preflight.TopicWays, func(ctx context.Context) error { return r.readWays(ctx, p, &f) })
	}
	ask(preflight.TopicNodes, func(ctx context.Context) error { return r.countClusterNodes(ctx, p, &f) })
	if p.FunctionMemory == settings.Auto {
		ask(preflight.TopicMemory, func(ctx context.Context) error { return r.readMemory(ctx, p, &f) })
	}
	ask(preflight.TopicLambda, func(ctx context.Context) error { return r.readLimits(ctx, &f) })
	return f, denied, nil
}

// readRoles looks which of the roles that matter to the plan exist.
func (r Preflight) readRoles(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	for _, name := range append(givenRoles(p), p.MadeNodeRoles...) {
		out, err := r.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(name[strings.LastIndex(name, "/")+1:])})
		switch {
		case awserrors.IsMissing(err):
		case err != nil:
			return err
		default:
			f.Roles = append(f.Roles, name)
			if path := aws.ToString(out.Role.Path); path != "" && path != "/" {
				if f.Paths == nil {
					f.Paths = map[string]string{}
				}
				f.Paths[name] = path
			}
		}
	}
	return nil
}

// givenRoles are the roles for nodes that the settings name.
func givenRoles(p preflight.StackPlan) []string {
	return slices.DeleteFunc([]string{p.NodeRole, p.WindowsNodeRole}, func(name string) bool { return name == "" })
}

// readEntry looks for the access entry of a role that the plan names, by the ARN that IAM knows.
func (r Preflight) readEntry(ctx context.Context, cluster, name string, f *preflight.Facts) error {
	role, err := r.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if awserrors.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	out, err := r.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &cluster,
		PrincipalArn: role.Role.Arn})
	// a cluster without access entries refuses the question
	if awserrors.IsMissing(err) || awserrors.CodeOf(err) == "InvalidRequestException" {
		return nil
	}
	if err != nil {
		return err
	}
	f.Entries = append(f.Entries, preflight.Entry{Principal: aws.ToString(out.AccessEntry.PrincipalArn),
		Type: aws.ToString(out.AccessEntry.Type)})
	return nil
}

func (r Preflight) readEndpoints(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	pages := ec2.NewDescribeVpcEndpointsPaginator(r.EC2, &ec2.DescribeVpcEndpointsInput{
		MaxResults: aws.Int32(1000),
		Filters:    []ec2types.Filter{{Name: aws.String("vpc-id"), Values: []string{p.VPC}}}})
	var found []preflight.Endpoint
	for page, err := range paging.Bounded(ctx, mostEndpointPages, pages) {
		if err != nil {
			return err
		}
		for _, e := range page.VpcEndpoints {
			state := strings.ToLower(string(e.State))
			if state == "deleted" || state == "deleting" || state == "failed" || state == "rejected" || state == "expired" {
				continue
			}
			service := aws.ToString(e.ServiceName)
			found = append(found, preflight.Endpoint{ID: aws.ToString(e.VpcEndpointId),
				Service:    service[strings.LastIndex(service, ".")+1:],
				Gateway:    e.VpcEndpointType == ec2types.VpcEndpointTypeGateway,
				PrivateDNS: aws.ToBool(e.PrivateDnsEnabled)})
		}
	}
	f.Endpoints = append(f.Endpoints, found...)
	return nil
}

// readZones reads in which zones the services of the plan's endpoints have them. In China some names begin otherwise.
func (r Preflight) readZones(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	var names []string
	for _, service := range p.Endpoints {
		name := "com.amazonaws." + p.Region + "." + service
		names = append(names, name, "cn."+name)
	}
	out, err := r.EC2.DescribeVpcEndpointServices(ctx, &ec2.DescribeVpcEndpointServicesInput{
		Filters: []ec2types.Filter{ec2Filter("service-name", names...)}})
	if err != nil {
		return err
	}
	f.Zones = map[string][]string{}
	for _, s := range out.ServiceDetails {
		name := aws.ToString(s.ServiceName)
		f.Zones[name[strings.LastIndex(name, ".")+1:]] = s.AvailabilityZones
	}
	return nil
}

func (r Preflight) readSubnets(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	out, err := r.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{
		Filters: []ec2types.Filter{{Name: aws.String("subnet-id"), Values: p.Subnets}}})
	if err != nil {
		return err
	}
	for _, s := range out.Subnets {
		f.Subnets = append(f.Subnets, preflight.Subnet{ID: aws.ToString(s.SubnetId), VPC: aws.ToString(s.VpcId),
			Zone: aws.ToString(s.AvailabilityZone)})
	}
	return nil
}

// readWays reads how the subnets get to S3.
func (r Preflight) readWays(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	all, list, err := ReadSubnetRoutes(ctx, r.EC2, p.Region, p.VPC, p.Subnets)
	if err != nil {
		return err
	}
	for _, s := range all {
		found := slices.ContainsFunc(s.Routes, func(r Route) bool { return preflight.LeadsToS3(r.To, r.Via, list) })
		maybe := slices.ContainsFunc(s.Routes, func(r Route) bool { return preflight.MayLeadToS3(r.To, r.Via) })
		f.Ways = append(f.Ways, preflight.Way{Subnet: s.Subnet, Found: found, Maybe: maybe})
	}
	return nil
}

// readLimits reads what the account may run at once.
func (r Preflight) readLimits(ctx context.Context, f *preflight.Facts) error {
	out, err := r.Lambda.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil || out.AccountLimit == nil {
		return err
	}
	f.Limit, f.Free = int(out.AccountLimit.ConcurrentExecutions),
		int(aws.ToInt32(out.AccountLimit.UnreservedConcurrentExecutions))
	if out.AccountUsage != nil {
		f.CodeLimit, f.CodeUsed = out.AccountLimit.TotalCodeSize, out.AccountUsage.TotalCodeSize
	}
	return nil
}

// readMemory reads what the functions have that read the cluster, if they are there.
func (r Preflight) readMemory(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	deployed, err := r.ReadDeployed(ctx, p)
	if awserrors.IsMissing(err) {
		return nil
	}
	f.Memory = deployed.Memory
	return err
}

// ReadDeployed asks what the functions were told of the cluster when they were deployed, and their memory. It fails
// where there are none yet.
func (r Preflight) ReadDeployed(ctx context.Context, p preflight.StackPlan) (preflight.Facts, error) {
	out, err := r.Lambda.GetFunctionConfiguration(ctx,
		&lambda.GetFunctionConfigurationInput{FunctionName: &p.MemoryLike})
	if err != nil {
		return preflight.Facts{}, fmt.Errorf("read configuration of function %s: %w", p.MemoryLike, err)
	}
	f := preflight.Facts{Memory: int(aws.ToInt32(out.MemorySize))}
	f.Cluster = preflight.Cluster{Name: p.Cluster, Region: p.Region}
	if out.Environment != nil {
		told := out.Environment.Variables
		f.Cluster.Endpoint, f.Cluster.CABundle = told["CLUSTER_ENDPOINT"], told["CLUSTER_CA_BUNDLE"]
		f.Cluster.ServiceCIDR = told["SERVICE_CIDR"]
	}
	return f, nil
}

// countClusterNodes counts the running instances that carry the tag by which EC2 knows the nodes of the cluster. It
// stops after 20,000.
func (r Preflight) countClusterNodes(ctx context.Context, p preflight.StackPlan, f *preflight.Facts) error {
	pages := ec2.NewDescribeInstancesPaginator(r.EC2, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(instancesPage),
		Filters: []ec2types.Filter{ec2Filter("tag-key", "kubernetes.io/cluster/"+p.Cluster),
			ec2Filter("instance-state-name", string(ec2types.InstanceStateNameRunning))}})
	nodes := 0
	for page, err := range paging.Bounded(ctx, mostNodePages, pages) {
		if _, more := errors.AsType[*paging.BoundError](err); more {
			break // that many need as much memory as there is to be had
		}
		if err != nil {
			return err
		}
		for _, reservation := range page.Reservations {
			nodes += len(reservation.Instances)
		}
	}
	f.Nodes = nodes
	return nil
}
