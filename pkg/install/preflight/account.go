package preflight

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/findings"
)

// aboutRole is the topic of findings about the nodes' role.
const aboutRole = TopicRoles

// checkNodeRoles finds roles that CloudFormation cannot make because they are there, and a named one that is not.
func (c *checker) checkNodeRoles() {
	c.checkGivenRole("nodeRole", c.plan.NodeRole, "EC2_LINUX")
	c.checkGivenRole("windowsNodes", c.plan.WindowsNodeRole, "EC2_WINDOWS")
	if !c.knows(TopicRoles) {
		return
	}
	for _, name := range c.plan.MadeNodeRoles {
		if !slices.Contains(c.facts.Roles, name) || slices.Contains(c.before.MadeNodeRoles, name) && !c.before.Observe {
			continue
		}
		if strings.HasSuffix(name, "-windows") {
			c.Add(c.whenMade(), aboutRole, "the role "+name+" exists already, and CloudFormation does not take over what it has not made",
				`write "windowsNodes": "`+name+`" into the context of cdk.json and deploy again; keep its access entry`)
			continue
		}
		c.Add(c.whenMade(), aboutRole, "the role "+name+" exists already, as Karpenter's own guide makes it, and CloudFormation does not take over what it has not made",
			NameNodeRole(name)+"; keep its access entry")
	}
}

// NameNodeRole says how the stack is told to use a role that is there.
func NameNodeRole(name string) string {
	return `write "nodeRole": "` + name + `" into the context of cdk.json (nodeRole: ` + name + `) and deploy again`
}

// whenMade returns the gravity of an existing role: mode observe makes none yet.
func (c *checker) whenMade() findings.Level {
	if c.plan.Observe {
		return findings.Warning
	}
	return c.whenThere()
}

// checkGivenRole finds a role of a setting that nodes could not join with; an empty name is none.
func (c *checker) checkGivenRole(setting, name, entryType string) {
	if name == "" {
		return
	}
	if c.knows(TopicRoles) && !slices.Contains(c.facts.Roles, name) {
		c.Add(findings.Broken, aboutRole, setting+" names the role "+name+", which does not exist",
			"correct "+setting+" in cdk.json, or remove it: then the stack makes a role")
		return
	}
	if path := c.facts.Paths[name]; path != "" {
		c.Add(findings.Broken, aboutRole, fmt.Sprintf("%s names the role %s, which has the path %s: nobody could hand it to EC2",
			setting, name, path), fmt.Sprintf(`write "nodeRoles": "%s%s" into the context of cdk.json, and remove %s`,
			strings.TrimPrefix(path, "/"), name, setting))
		return
	}
	if !c.knows(TopicEntries) || !c.facts.Cluster.Found {
		return
	}
	i := slices.IndexFunc(c.facts.Entries, func(e Entry) bool { return strings.HasSuffix(e.Principal, "/"+name) })
	switch {
	case i < 0:
		unless := ""
		if c.facts.Cluster.Mode != "API" {
			unless = " (unless the aws-auth ConfigMap names it)"
		}
		c.Add(findings.Warning, aboutRole, "the role "+name+" has no access entry: its nodes cannot join"+unless,
			fmt.Sprintf("aws eks create-access-entry --region %s --cluster-name %s --type %s --principal-arn ARN-OF-%s",
				c.plan.Region, c.plan.Cluster, entryType, name))
	case c.facts.Entries[i].Type != entryType:
		c.Add(findings.Warning, aboutRole, fmt.Sprintf("the access entry of the role %s is of type %s: its nodes cannot join", name,
			c.facts.Entries[i].Type), "delete it and make one of type "+entryType+"; the type of an entry cannot be changed")
	}
}

// checkEndpoints finds endpoints that EC2 would refuse because the VPC answers to that name already.
func (c *checker) checkEndpoints() {
	if len(c.plan.Endpoints) == 0 {
		return
	}
	if c.plan.GivenRegion == "" && hasOtherEndpointNames(c.plan.Region) {
		c.Add(findings.Broken, TopicEndpoints, "in "+c.plan.Region+" endpoints have other names, which the stack knows only when it is made for that region",
			`write "region": "`+c.plan.Region+`" into the context of cdk.json and deploy again`)
	}
	if !c.knows(TopicEndpoints) {
		return
	}
	var there, rest []string
	for _, service := range c.plan.Endpoints {
		i := slices.IndexFunc(c.facts.Endpoints, func(e Endpoint) bool {
			return e.Service == service && !e.Gateway && e.PrivateDNS
		})
		if i < 0 || slices.Contains(c.before.Endpoints, service) && c.before.VPC == c.plan.VPC {
			rest = append(rest, service)
			continue
		}
		there = append(there, service+" ("+c.facts.Endpoints[i].ID+")")
	}
	if len(there) > 0 {
		mend := `leave them out: write "vpcEndpoints": ["` + strings.Join(rest, `", "`) + `"] into the context of cdk.json`
		if len(rest) == 0 {
			mend = `write "vpcEndpoints": false, "isolatedVPC": true into the context of cdk.json`
		}
		c.Add(c.whenThere(), TopicEndpoints, fmt.Sprintf("%s has interface endpoints already for %s, and EC2 refuses a second one with private DNS",
			c.plan.VPC, strings.Join(there, ", ")),
			mend+"; the security groups of the existing ones must admit TCP 443 from the functions")
	}
}

// checkZones finds subnets into which EC2 puts no endpoint: a service has them in some zones, and an endpoint takes
// one subnet of a zone.
func (c *checker) checkZones() {
	if len(c.plan.Endpoints) == 0 || !c.knows(TopicSubnets) || !c.knows(TopicZones) {
		return
	}
	first := map[string]string{} // of a zone
	for _, s := range c.facts.Subnets {
		if s.Zone == "" {
			continue
		}
		if other, taken := first[s.Zone]; taken {
			c.Add(findings.Broken, TopicZones, fmt.Sprintf("subnetIDs names %s and %s, both in %s, and an endpoint takes one subnet of a zone", other, s.ID, s.Zone),
				"leave one of them out of subnetIDs")
			continue
		}
		first[s.Zone] = s.ID
		var without []string
		for _, service := range c.plan.Endpoints {
			// of a service that EC2 does not list it says more
			if zones := c.facts.Zones[service]; len(zones) > 0 && !slices.Contains(zones, s.Zone) {
				without = append(without, service)
			}
		}
		if len(without) > 0 {
			c.Add(findings.Broken, TopicZones, fmt.Sprintf("AWS has no endpoints for %s in %s, where %s of subnetIDs is",
				strings.Join(without, ", "), s.Zone, s.ID), "leave that subnet out of subnetIDs, or the services out of vpcEndpoints")
		}
	}
}

// checkSubnets finds subnets in which Lambda cannot put the functions.
func (c *checker) checkSubnets() {
	if !c.knows(TopicSubnets) {
		return
	}
	for _, id := range c.plan.Subnets {
		i := slices.IndexFunc(c.facts.Subnets, func(s Subnet) bool { return s.ID == id })
		switch {
		case i < 0:
			c.Add(findings.Broken, TopicSubnets, "subnetIDs names "+id+", which does not exist in "+c.plan.Region,
				"correct subnetIDs in cdk.json")
		case c.facts.Subnets[i].VPC != c.plan.VPC:
			c.Add(findings.Broken, TopicSubnets, fmt.Sprintf("subnetIDs names %s of %s, and vpcID is %s", id, c.facts.Subnets[i].VPC,
				c.plan.VPC), "name subnets of one VPC in cdk.json, and that VPC as vpcID")
		}
	}
}
