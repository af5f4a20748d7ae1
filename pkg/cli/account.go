package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/settings"
)

const (
	lambdaTime    = "2006-01-02T15:04:05.999-0700"
	mostEntries   = 500 // access entries that are looked at
	mostInstances = 100 // pages of instances
	spotRoleName  = "AWSServiceRoleForEC2Spot"
)

// standardFamilies are the first letters of the instance families that the quotas of standard instances count.
const standardFamilies = "acdhimrtz"

// names returns the names of the cluster's resources.
func (f doctorFlags) names() naming.Names { return naming.Names{Prefix: f.prefix, Cluster: f.cluster} }

// functionNames are Joiner's Lambda functions for a cluster.
func functionNames(n naming.Names) []string {
	var out []string
	for _, f := range []string{"provision", "lifecycle", "disrupt", "refresh", "spotinterruption",
		"reservationinterruption", "rebalance", "scheduledchange", "statechange", "preflight", "setup"} {
		out = append(out, n.Function(f))
	}
	return out
}

// readAccount asks AWS. What it cannot find out stays unknown, with the reason.
func (f doctorFlags) readAccount(ctx context.Context, out *doctor.Facts, chosen []awsv1.EC2NodeClassStatus) {
	unknown := func(why string) {
		out.EKS.Unknown, out.Entries.Unknown, out.Functions.Unknown, out.Lambda.Unknown, out.Quotas.Unknown,
			out.SpotRole.Unknown, out.NodeRole.Unknown, out.Encryption.Unknown = why, why, why, why, why, why, why, why
		for i := range out.Classes {
			out.Classes[i].Unknown = why
		}
	}
	if f.cluster == "" {
		unknown("AWS was not asked: name the cluster with --cluster")
		return
	}
	cfg, err := f.awsConfig(ctx)
	if err != nil {
		unknown("AWS cannot be asked: " + err.Error())
		return
	}
	out.EKS = eksFacts(ctx, eks.NewFromConfig(cfg), f.cluster)
	out.Entries = entryFacts(ctx, eks.NewFromConfig(cfg), f.cluster)
	out.Functions = functionFacts(ctx, lambda.NewFromConfig(cfg), f.names())
	for _, one := range out.Functions.List {
		if one.Found { // every function has the same
			out.Secret = secretFacts(ctx, cfg, one.RemoteWrite.URL, one.RemoteWrite.Secret)
			break
		}
	}
	out.Lambda = lambdaFacts(ctx, lambda.NewFromConfig(cfg), f.names())
	out.SpotRole = roleFacts(ctx, iam.NewFromConfig(cfg), spotRoleName)
	out.NodeRole = roleFacts(ctx, iam.NewFromConfig(cfg), f.names().NodeRole())
	out.Quotas = f.quotaFacts(ctx, cfg)
	e := ec2.NewFromConfig(cfg)
	out.Encryption = encryptionFacts(ctx, e)
	for i := range out.Classes {
		networkFacts(ctx, e, &out.Classes[i], chosen[i], f.cluster)
	}
}

func eksFacts(ctx context.Context, c *eks.Client, name string) doctor.EKS {
	out, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
	switch {
	case awserrors.IsMissing(err):
		return doctor.EKS{}
	case err != nil:
		return doctor.EKS{Unknown: err.Error()}
	}
	k := out.Cluster
	e := doctor.EKS{Found: true, Status: string(k.Status)}
	if k.AccessConfig != nil {
		e.Mode = string(k.AccessConfig.AuthenticationMode)
	}
	if v := k.ResourcesVpcConfig; v != nil {
		e.Public, e.CIDRs, e.Subnets = v.EndpointPublicAccess, v.PublicAccessCidrs, v.SubnetIds
		if g := aws.ToString(v.ClusterSecurityGroupId); g != "" {
			e.SecurityGroups = []string{g}
		}
	}
	return e
}

func entryFacts(ctx context.Context, c *eks.Client, name string) doctor.Entries {
	var out doctor.Entries
	pages := eks.NewListAccessEntriesPaginator(c, &eks.ListAccessEntriesInput{ClusterName: &name})
	for page, err := range paging.Bounded(ctx, mostEntries, pages) {
		if err != nil {
			return doctor.Entries{Unknown: err.Error()}
		}
		for _, principal := range page.AccessEntries {
			if len(out.List) == mostEntries {
				return doctor.Entries{Unknown: fmt.Sprintf("there are more than %d", mostEntries)}
			}
			one, err := c.DescribeAccessEntry(ctx,
				&eks.DescribeAccessEntryInput{ClusterName: &name, PrincipalArn: &principal})
			if awserrors.IsMissing(err) {
				continue // it went meanwhile
			}
			if err != nil {
				return doctor.Entries{Unknown: err.Error()}
			}
			out.List = append(out.List, doctor.Entry{Principal: principal, Type: aws.ToString(one.AccessEntry.Type),
				Groups: one.AccessEntry.KubernetesGroups})
		}
	}
	return out
}

func functionFacts(ctx context.Context, c *lambda.Client, n naming.Names) doctor.Functions {
	var out doctor.Functions
	for _, name := range functionNames(n) {
		got, err := c.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
		if awserrors.IsMissing(err) {
			out.List = append(out.List, doctor.Function{Name: name})
			continue
		}
		if err != nil {
			return doctor.Functions{Unknown: err.Error()}
		}
		f := doctor.Function{Name: name, Found: true, State: string(got.State), Reason: aws.ToString(got.StateReason),
			Memory:  int(aws.ToInt32(got.MemorySize)),
			InVPC:   got.VpcConfig != nil && aws.ToString(got.VpcConfig.VpcId) != "",
			Version: version.InDescription(aws.ToString(got.Description))}
		f.Changed, _ = time.Parse(lambdaTime, aws.ToString(got.LastModified)) // zero where it says nothing
		if got.Environment != nil {
			set := got.Environment.Variables
			f.Mode = set["MODE"]
			if n, err := strconv.Atoi(set["MAX_NODES"]); err == nil {
				f.MaxNodes = n
			}
			f.LeaseNamespaces = defaultSettings().KarpenterNamespaces
			if list := set["KARPENTER_NAMESPACES"]; list != "" {
				f.LeaseNamespaces = strings.Split(list, ",")
			}
			f.RemoteWrite = remoteWriteOf(set)
		}
		if f.State == "" || f.State == "Inactive" {
			f.State = "Active" // older functions have no state; one that slept long wakes by itself
		}
		out.List = append(out.List, f)
	}
	return out
}

// alone is the number of functions of the stack that reserve 1 each.
const alone = 4

// lambdaFacts returns what the account may run at once, and what is reserved in it for notices that leave two minutes.
func lambdaFacts(ctx context.Context, c *lambda.Client, n naming.Names) doctor.Lambda {
	account, err := c.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	switch {
	case err != nil:
		return doctor.Lambda{Unknown: err.Error()}
	case account.AccountLimit == nil:
		return doctor.Lambda{Unknown: "Lambda did not say what the account may run"}
	}
	out := doctor.Lambda{Limit: int(account.AccountLimit.ConcurrentExecutions),
		Unreserved: int(aws.ToInt32(account.AccountLimit.UnreservedConcurrentExecutions))}
	var reserved []int
	for _, name := range []string{"spotinterruption", "reservationinterruption"} {
		got, err := c.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{
			FunctionName: aws.String(n.Function(name))})
		switch {
		case awserrors.IsMissing(err):
		case err != nil:
			return doctor.Lambda{Unknown: err.Error()}
		default:
			reserved = append(reserved, int(aws.ToInt32(got.ReservedConcurrentExecutions)))
		}
	}
	if len(reserved) > 0 {
		out.ForNotices = slices.Min(reserved)
		return out
	}
	byDefault, err := settings.ParseStack(func(string) string { return "" })
	if err != nil {
		return doctor.Lambda{Unknown: err.Error()}
	}
	plan := settings.PlanConcurrency([]settings.Concurrency{
		settings.NewConcurrency(alone, byDefault.InterruptionConcurrency)})[0]
	out.Wanted = plan.Alone + plan.Spot + plan.Reservation
	return out
}

// roleFacts tell whether there is a role of the name.
func roleFacts(ctx context.Context, c *iam.Client, name string) doctor.Role {
	_, err := c.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if err == nil || awserrors.IsMissing(err) {
		return doctor.Role{Name: name, Found: err == nil}
	}
	return doctor.Role{Name: name, Unknown: err.Error()}
}

func encryptionFacts(ctx context.Context, c *ec2.Client) doctor.Encryption {
	got, err := c.GetEbsEncryptionByDefault(ctx, &ec2.GetEbsEncryptionByDefaultInput{})
	if err != nil {
		return doctor.Encryption{Unknown: err.Error()}
	}
	if !aws.ToBool(got.EbsEncryptionByDefault) {
		return doctor.Encryption{}
	}
	key, err := c.GetEbsDefaultKmsKeyId(ctx, &ec2.GetEbsDefaultKmsKeyIdInput{})
	if err != nil {
		return doctor.Encryption{Unknown: err.Error()}
	}
	return doctor.Encryption{Always: true, Key: aws.ToString(key.KmsKeyId)}
}

// quotaFacts are the two quotas that nearly all nodes count for.
func (f doctorFlags) quotaFacts(ctx context.Context, cfg aws.Config) doctor.Quotas {
	load, err := f.readCatalog(ctx)
	if err != nil {
		return doctor.Quotas{Unknown: err.Error()}
	}
	used, err := countVCPUs(ctx, ec2.NewFromConfig(cfg), load)
	if err != nil {
		return doctor.Quotas{Unknown: err.Error()}
	}
	var out doctor.Quotas
	c := servicequotas.NewFromConfig(cfg)
	for _, q := range []struct{ code, capacity string }{{"L-1216C47A", instancetypes.OnDemand},
		{"L-34B43A08", instancetypes.Spot}} {
		got, err := c.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"),
			QuotaCode: aws.String(q.code)})
		if err != nil {
			return doctor.Quotas{Unknown: err.Error()}
		}
		out.List = append(out.List, doctor.Quota{Code: q.code, Name: aws.ToString(got.Quota.QuotaName),
			Limit: aws.ToFloat64(got.Quota.Value), Used: used[q.capacity]})
	}
	return out
}

// countVCPUs counts those of running standard instances by capacity type.
func countVCPUs(ctx context.Context, c *ec2.Client, load instancetypes.Catalog) (map[string]float64, error) {
	out := map[string]float64{}
	pages := ec2.NewDescribeInstancesPaginator(c, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(1000),
		Filters: []ec2types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running"}}}})
	for page, err := range paging.Bounded(ctx, mostInstances, pages) {
		if err != nil {
			return nil, fmt.Errorf("list instances by the thousand: %w", err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				name, capacity := string(i.InstanceType), instancetypes.OnDemand
				if i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot {
					capacity = instancetypes.Spot
				}
				if facts, ok := load.Find(name); ok && strings.ContainsRune(standardFamilies, rune(name[0])) &&
					!strings.HasPrefix(name, "inf") && !strings.HasPrefix(name, "trn") &&
					!strings.HasPrefix(name, "dl") {
					out[capacity] += float64(facts.VCPU)
				}
			}
		}
	}
	return out, nil
}

// networkFacts looks at the subnets and security groups that a class chose.
func networkFacts(ctx context.Context, c *ec2.Client, class *doctor.Class, chosen awsv1.EC2NodeClassStatus,
	cluster string) {
	subnets := lists.Of(chosen.Subnets, func(s awsv1.Subnet) string { return s.ID })
	groups := lists.Of(chosen.SecurityGroups, func(g awsv1.SecurityGroup) string { return g.ID })
	if len(subnets) > 0 {
		got, err := c.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: subnets})
		if err != nil {
			class.Unknown = err.Error()
			return
		}
		for _, s := range got.Subnets {
			class.Subnets = append(class.Subnets, doctor.Subnet{ID: aws.ToString(s.SubnetId),
				Zone: aws.ToString(s.AvailabilityZone), FreeIPs: int(aws.ToInt32(s.AvailableIpAddressCount))})
		}
	}
	if len(groups) == 0 {
		return
	}
	got, err := c.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: groups})
	if err != nil {
		class.Unknown = err.Error()
		return
	}
	for _, g := range got.SecurityGroups {
		one := doctor.SecurityGroup{ID: aws.ToString(g.GroupId)}
		for _, t := range g.Tags {
			one.Owned = one.Owned || aws.ToString(t.Key) == awsv1.TagClusterPrefix+cluster
		}
		class.Groups = append(class.Groups, one)
	}
}
