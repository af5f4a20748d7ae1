package preflight

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/findings"
)

// Cluster holds what EKS says of a cluster, as far as it decides whether the functions can get in.
type Cluster struct {
	Name, Region string
	Found        bool
	Status, Mode string // ACTIVE; API, API_AND_CONFIG_MAP or CONFIG_MAP
	Endpoint     string
	CABundle     string // with ServiceCIDR and Endpoint, what the functions are told
	ServiceCIDR  string
	Public       bool
	Private      bool
	CIDRs        []string // from which a public endpoint may be reached
	Inside       bool     // the functions run in subnets of a VPC, from which they may reach a private endpoint
	IPv6         bool     // pods and services have addresses of IPv6
	AutoMode     bool     // EKS Auto Mode launches nodes too
}

const (
	aboutCluster = "cluster"
	anywhere     = "0.0.0.0/0"
)

// IsGone reports whether nothing is left to be looked after in the cluster: there is none, it never came into being, or
// it is being deleted.
func (cluster Cluster) IsGone() bool {
	return !cluster.Found || slices.Contains([]string{"DELETING", "FAILED", "CREATING"}, cluster.Status)
}

// CheckAccess says all that has to be changed before anybody can be let into the cluster; nil when nothing. Which
// addresses its endpoint admits shows when it is called.
func (cluster Cluster) CheckAccess() error {
	cluster.CIDRs = []string{anywhere}
	c := checker{facts: Facts{Cluster: cluster}}
	c.checkReach()
	return Refusal(c.List)
}

func (c *checker) checkCluster() {
	cluster := c.facts.Cluster
	c.checkReach()
	if cluster.AutoMode {
		c.Add(findings.Warning, "EKS Auto Mode", "EKS Auto Mode is on and launches nodes for the NodePools of its own NodeClasses: "+
			"Joiner leaves its CRDs, NodePools, NodeClaims and nodes as they are, and a pod that fits pools of both may get two nodes",
			"give the NodePools of one of them a taint or a label that pods must ask for, and see that the cluster has the add-ons vpc-cni and kube-proxy, "+
				"which Auto Mode nodes do not need and Joiner's do: aws eks list-addons --cluster-name "+cluster.Name)
	}
	if cluster.IPv6 && c.plan.NodeRole == "" && len(c.plan.NodePolicies) == 0 {
		c.Add(findings.Warning, "IPv6", "the cluster uses IPv6, and AmazonEKS_CNI_Policy does not let nodes take such addresses (ec2:AssignIpv6Addresses)",
			"name a policy of yours that does in nodePolicies, unless the VPC CNI has a role of its own")
	}
}

// checkReach finds what keeps the functions out of the cluster. Of a cluster that is not there nothing more is said.
func (c *checker) checkReach() {
	cluster := c.facts.Cluster
	update := "aws eks update-cluster-config --region " + cluster.Region + " --name " + cluster.Name
	switch {
	case !cluster.Found:
		c.Add(findings.Broken, aboutCluster, "there is no EKS cluster "+cluster.Name+" in "+cluster.Region,
			"correct clusterName in cdk.json, or deploy to the region of the cluster")
		return
	case cluster.Status != "ACTIVE" && cluster.Status != "UPDATING":
		c.Add(findings.Broken, aboutCluster, "cluster "+cluster.Name+" is "+cluster.Status, "wait until it is ACTIVE and deploy again")
	}
	if cluster.Mode != "API" && cluster.Mode != "API_AND_CONFIG_MAP" {
		c.Add(findings.Broken, aboutCluster, "cluster "+cluster.Name+
			" has the authentication mode CONFIG_MAP, which knows no access entries, and Joiner's functions and nodes need them",
			"add them (the aws-auth ConfigMap goes on working; there is no way back to CONFIG_MAP alone) and deploy again: "+
				update+" --access-config authenticationMode=API_AND_CONFIG_MAP")
	}
	switch {
	case cluster.Inside && !cluster.Private && len(c.plan.Endpoints) > 0:
		c.Add(findings.Warning, "endpoint", "the API server of cluster "+cluster.Name+" has no private endpoint, so that functions in a VPC without NAT cannot reach it",
			update+" --resources-vpc-config endpointPrivateAccess=true")
	case cluster.Inside:
	case !cluster.Public:
		c.Add(findings.Broken, "endpoint", "the API server of cluster "+cluster.Name+" has no public endpoint, and Joiner's functions run outside its VPC",
			"set vpcID and subnetIDs in cdk.json, or open the endpoint: "+update+
				" --resources-vpc-config endpointPublicAccess=true,endpointPrivateAccess=true")
	case !slices.Contains(cluster.CIDRs, anywhere):
		c.Add(findings.Broken, "endpoint", fmt.Sprintf("the public endpoint of cluster %s admits %s only, and functions outside a VPC call from any address",
			cluster.Name, strings.Join(cluster.CIDRs, ", ")),
			"set vpcID and subnetIDs in cdk.json, or admit every address: "+update+" --resources-vpc-config publicAccessCidrs="+anywhere)
	}
}
