package doctor

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/model/lists"
)

const tight = 0.9 // part of a quota from which on it is told of

func (e *examination) checkEKS() {
	const check = "EKS"
	k := e.f.EKS
	if e.AddUnknown(check, k.Unknown) {
		return
	}
	since := len(e.List)
	update := "aws eks update-cluster-config --name " + e.clusterName()
	switch {
	case !k.Found:
		e.Add(findings.Broken, check, "there is no cluster "+e.clusterName()+" in this region and account",
			"look at AWS_REGION and at the credentials: aws sts get-caller-identity")
		return
	case k.Status != "ACTIVE":
		e.Add(findings.Broken, check, "the cluster is "+k.Status,
			"wait until it is ACTIVE: aws eks wait cluster-active --name "+e.clusterName())
	}
	if k.Mode == "" || k.Mode == "CONFIG_MAP" {
		e.Add(findings.Broken, check, "authentication mode CONFIG_MAP knows no access entries, which functions and nodes need",
			update+" --access-config authenticationMode=API_AND_CONFIG_MAP (aws-auth goes on working; there is no way back)")
	}
	inside := slices.ContainsFunc(e.f.Functions.List, func(f Function) bool { return f.InVPC })
	switch {
	case inside:
	case !k.Public:
		e.Add(findings.Broken, "endpoint", "the API server has no public endpoint, and Joiner's functions run outside the VPC", "set vpcID and subnetIDs in cdk.json, or: "+update+" --resources-vpc-config endpointPublicAccess=true")
	case !slices.Contains(k.CIDRs, "0.0.0.0/0"):
		e.Add(findings.Broken, "endpoint", "the public endpoint admits "+lists.Name(k.CIDRs,
			", ")+" only, and functions outside a VPC have no address of their own",
			"set vpcID and subnetIDs in cdk.json, or admit 0.0.0.0/0")
	}
	e.AddFine(since, check, "cluster "+e.clusterName()+" is ACTIVE, authentication "+k.Mode+", and its endpoint is within reach of the functions")
}

func (e *examination) checkFunctions() {
	const check = "functions"
	if e.AddUnknown(check, e.f.Functions.Unknown) {
		return
	}
	since := len(e.List)
	missing := 0
	for _, f := range e.f.Functions.List {
		switch {
		case !f.Found:
			missing++
		case f.State != "Active":
			e.Add(findings.Broken, check, fmt.Sprintf("%s is %s: %s", f.Name, f.State, f.Reason),
				"mend what it says and deploy again")
		}
	}
	switch n := len(e.f.Functions.List); {
	case missing == n:
		e.Add(findings.Warning, check, "the stack is not deployed for cluster "+e.clusterName(),
			"run joiner deploy --cluster "+e.clusterName()+" in an unpacked release; npx aws-cdk@2 diff there shows what it would make")
	case missing > 0:
		e.Add(findings.Broken, check, fmt.Sprintf("%d of %d are missing", missing, n), "joiner deploy")
	}
	e.AddFine(since, check, fmt.Sprintf("%d are active", len(e.f.Functions.List)))
}

// checkNodeRole finds a role that would stop a deployment. Of a stack that is deployed it is the stack's own, or named.
func (e *examination) checkNodeRole() {
	const check = "node role"
	deployed := slices.ContainsFunc(e.f.Functions.List, func(f Function) bool { return f.Found })
	if deployed || e.f.Functions.Unknown != "" || e.AddUnknown(check, e.f.NodeRole.Unknown) || !e.f.NodeRole.Found {
		return
	}
	e.Add(findings.Warning, check, "the role "+e.f.NodeRole.Name+" exists already, and the stack cannot make it",
		preflight.NameNodeRole(e.f.NodeRole.Name))
}

func (e *examination) checkAccessEntries() {
	const check = "access entries"
	if e.AddUnknown(check, e.f.Entries.Unknown) {
		return
	}
	since := len(e.List)
	for _, g := range accessGroups() {
		if !slices.ContainsFunc(e.f.Entries.List, func(x Entry) bool { return slices.Contains(x.Groups, g) }) {
			e.Add(findings.Broken, check, "no access entry names the group "+g+": the cluster does not let that function in",
				"joiner deploy makes it; by hand: aws eks create-access-entry --cluster-name "+e.clusterName()+" --principal-arn ROLE --kubernetes-groups "+g)
		}
	}
	for _, c := range e.f.Classes {
		if c.Role == "" {
			continue
		}
		mine := slices.IndexFunc(e.f.Entries.List,
			func(x Entry) bool { return strings.HasSuffix(x.Principal, "/"+c.Role) })
		switch {
		case mine < 0:
			e.Add(findings.Broken, check, fmt.Sprintf(
				"the role %s of EC2NodeClass %s has none: its nodes cannot join (unless aws-auth still names it)",
				c.Role, c.Name),
				"aws eks create-access-entry --cluster-name "+e.clusterName()+" --type EC2_LINUX --principal-arn ARN-OF-"+c.Role)
		case !strings.HasPrefix(e.f.Entries.List[mine].Type, "EC2"):
			e.Add(findings.Broken, check, fmt.Sprintf(
				"that of the role %s of EC2NodeClass %s is of type %s: its nodes cannot join", c.Role, c.Name,
				e.f.Entries.List[mine].Type),
				"delete it and make one of type EC2_LINUX; the type of an entry cannot be changed")
		}
	}
	e.AddFine(since, check, "every function and every node role has one")
}

func (e *examination) spotRole() {
	const check = "spot role"
	if e.AddUnknown(check, e.f.SpotRole.Unknown) {
		return
	}
	if !e.f.SpotRole.Found {
		e.Add(findings.Warning, check, "the account has no AWSServiceRoleForEC2Spot: EC2 sells it no spot capacity, and Joiner falls back to on-demand",
			"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")
		return
	}
	e.Add(findings.Fine, check, "AWSServiceRoleForEC2Spot exists", "")
}

// awsManagedKey ends the names under which AWS gives its own key for volumes, which everybody in the account may use.
const awsManagedKey = "alias/aws/ebs"

// checkEncryption tells of a key that provision must be allowed to use. Where it may not EC2 takes a launch, and ends the
// instance at once.
func (e *examination) checkEncryption() {
	const check = "encryption"
	k := e.f.Encryption
	switch {
	case e.AddUnknown(check, k.Unknown):
	case !k.Always:
		e.Add(findings.Fine, check, "new volumes are encrypted where an EC2NodeClass says so", "")
	case strings.HasSuffix(k.Key, awsManagedKey):
		e.Add(findings.Fine, check, "new volumes are encrypted with the key that AWS manages", "")
	default:
		e.Add(findings.Warning, check, "new volumes of the account are encrypted with the key "+k.Key+
			": where the role of provision may not use it, EC2 ends every instance at once with Client.InternalError",
			"give the role in the output ProvisionRoleArn of the stack the rights that the key policy in infra/README.md has")
	}
}

// Limits of what the account runs at once.
const (
	// Lambda keeps them for functions that reserve nothing, or all where the account may run fewer
	leastUnreserved = 100
	fewUnreserved   = 200 // 1,000 notices in a minute take about a third, with the nodes that come and go
)

func (e *examination) checkLambda() {
	const check = "Lambda"
	l := e.f.Lambda
	if e.AddUnknown(check, l.Unknown) {
		return
	}
	has := fmt.Sprintf("the account may run %d invocations at once, %d of them are not reserved", l.Limit, l.Unreserved)
	more := fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value %d", max(1000, 2*l.Limit))
	least := min(leastUnreserved, l.Limit)
	switch {
	case l.Unreserved-l.Wanted < least:
		e.Add(findings.Warning, check, fmt.Sprintf("%s and %d must stay so: the stack, which reserves %d by default, cannot be deployed", has, least, l.Wanted), more+", or lower interruptionConcurrency in cdk.json")
	case l.Wanted == 0 && l.ForNotices == 0 && l.Unreserved < fewUnreserved:
		e.Add(findings.Warning, check, has+", and none for notices that leave two minutes: whatever else runs can keep them waiting", "set interruptionConcurrency in cdk.json, or ask for more: "+more)
	case l.Wanted == 0:
		e.Add(findings.Fine, check, fmt.Sprintf("%s, and %d for each function whose notices leave two minutes", has,
			l.ForNotices), "")
	default:
		e.Add(findings.Fine, check, fmt.Sprintf("%s, and the stack reserves %d by default", has, l.Wanted), "")
	}
}

func (e *examination) checkQuotas() {
	const check = "quotas"
	if e.AddUnknown(check, e.f.Quotas.Unknown) {
		return
	}
	since := len(e.List)
	for _, q := range e.f.Quotas.List {
		if q.Used >= q.Limit*tight {
			e.Add(findings.Warning, check, fmt.Sprintf("%s: %.0f of %.0f vCPU are in use", q.Name, q.Used, q.Limit),
				fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code ec2 --quota-code %s --desired-value %.0f", q.Code, max(q.Limit*2, 64)))
		}
	}
	e.AddFine(since, check, "there is room in each that is looked at")
}
