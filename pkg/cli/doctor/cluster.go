package doctor

import (
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/nodeclass"
)

const (
	fewIPs       = 16 // a subnet with less will soon hold no node with its pods
	mostLoose    = 20
	checkAPI     = "API server"
	checkClasses = "EC2NodeClasses"
)

func (e *examination) checkAPI() {
	a := e.f.API
	if a.Unknown != "" {
		e.Add(findings.Broken, checkAPI, a.Unknown, "is the context of the kubeconfig right, the endpoint reachable from here, and the identity known to the cluster?")
		return
	}
	since := len(e.List)
	for _, right := range a.Denied {
		e.Add(findings.Unknown, "your rights", "you may not "+right+", so that is not looked at",
			"ask for the ClusterRole view and for joiner-admin")
	}
	if why := nodeclass.UnsupportedReason(minorVersion(a.Version)); why != "" {
		e.Add(findings.Warning, checkAPI, why, "upgrade Joiner first, or look for surprises")
	}
	e.AddFine(since, checkAPI, a.Host+" answers, "+a.Version)
}

// minorVersion is the version without its patch: v1.36.3 is 1.36.
func minorVersion(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func (e *examination) checkCRDs() {
	e.checkObjects("CRDs", e.f.CRDs, "is missing",
		findings.Finding{Level: findings.Warning, Mend: "joiner deploy with mode act, once no Karpenter leads the cluster: setup brings them up to date"})
}

func (e *examination) checkRBAC() {
	e.checkObjects("permissions", e.f.RBAC, "is missing: a function lacks its rights in the cluster",
		findings.Finding{Level: findings.Broken, Mend: "joiner deploy: its setup brings them up to date"})
}

// checkObjects looks whether objects that setup brings are there and as it brings them; differs says how much it
// matters when they are not.
func (e *examination) checkObjects(check string, all []Object, missing string, differs findings.Finding) {
	if e.f.API.Unknown != "" {
		return
	}
	since := len(e.List)
	for _, o := range all {
		switch {
		case !o.Found:
			e.Add(findings.Broken, check, o.Name+" "+missing, "joiner deploy: its setup installs them")
		case o.Differs != "":
			e.Add(differs.Level, check, o.Name+" "+o.Differs, differs.Mend)
		}
	}
	e.AddFine(since, check, fmt.Sprintf("%d objects are as this version brings them", len(all)))
}

func (e *examination) checkLeader() {
	const check = "Karpenter"
	l := e.f.Leader
	if e.f.API.Unknown != "" || e.AddUnknown(check, l.Unknown) {
		return
	}
	if l.Holder == "" {
		e.Add(findings.Fine, check, "nobody holds its leader lease", "")
		return
	}
	acting := slices.ContainsFunc(e.f.Functions.List, func(f Function) bool { return f.Found && f.Mode != "observe" })
	what := fmt.Sprintf("%s holds %s/karpenter-leader-election, so Joiner only observes", l.Holder, l.Namespace)
	unseen := slices.ContainsFunc(e.f.Functions.List, func(f Function) bool {
		return f.Found && f.Mode != "observe" && len(f.LeaseNamespaces) > 0 && !slices.Contains(f.LeaseNamespaces, l.Namespace)
	})
	if unseen {
		e.Add(findings.Broken, check, fmt.Sprintf("%s holds %s/karpenter-leader-election, which karpenterNamespaces does "+
			"not name, so Joiner acts beside it", l.Holder, l.Namespace),
			fmt.Sprintf("kubectl -n %s scale deployment karpenter --replicas 0, or deploy Joiner with that namespace in karpenterNamespaces",
				l.Namespace))
		return
	}
	if acting {
		e.Add(findings.Warning, check, what+", although its mode is act",
			fmt.Sprintf("kubectl -n %s scale deployment karpenter --replicas 0, or deploy Joiner with mode observe; joiner migrate says more", l.Namespace))
		return
	}
	e.Add(findings.Fine, check, what, "")
}

func (e *examination) checkPools() {
	if e.f.API.Unknown != "" {
		return
	}
	since := len(e.List)
	if len(e.f.Pools) == 0 {
		e.Add(findings.Broken, "NodePools", "there is none: nothing is launched",
			"kubectl apply -f a NodePool; infra/local/demo/manifests has one to begin with")
	}
	for _, p := range e.f.Pools {
		if p.Problem != "" {
			e.Add(findings.Broken, "NodePools", p.Name+" is not ready: "+p.Problem,
				"mend what it says; refresh looks again within five minutes")
		}
		if p.Disruption != "" {
			e.Add(findings.Warning, "NodePools", p.Name+": "+p.Disruption,
				"mend what it says; refresh looks again within five minutes")
		}
		for _, key := range p.Unknown {
			e.Add(findings.Warning, "NodePools", p.Name+": nothing reads its annotation "+key,
				"infra/settings.md lists those of NodePools; kubectl annotate nodepool "+p.Name+" "+key+"-")
		}
	}
	if open := unboundedPools(e.f.Pools); len(open) > 0 {
		e.Add(findings.Warning, "NodePools", lists.Name(open, ", ")+": without limits: whoever may create pods decides what the nodes cost",
			"set limits, or the annotation "+v1.AnnotationLimitUSD+", on each; priceAlarmUSD in cdk.json rings")
	}
	e.AddFine(since, "NodePools", fmt.Sprintf("%d are ready", len(e.f.Pools)))
}

// unboundedPools returns the names of the pools whose nodes nothing bounds.
func unboundedPools(pools []NodePool) (open []string) {
	for _, p := range pools {
		if !p.Bounded {
			open = append(open, p.Name)
		}
	}
	return open
}

func (e *examination) checkClasses() {
	if e.f.API.Unknown != "" {
		return
	}
	since := len(e.List)
	if len(e.f.Classes) == 0 {
		e.Add(findings.Broken, checkClasses, "there is none: no NodePool can launch anything",
			"kubectl apply -f an EC2NodeClass with role, subnetSelectorTerms, securityGroupSelectorTerms and amiSelectorTerms")
	}
	for _, c := range e.f.Classes {
		for _, p := range c.Problems {
			e.Add(findings.Broken, checkClasses, fmt.Sprintf("%s: %s: %s", c.Name, p.Condition, p.Message),
				e.mendClass(p.Condition))
		}
		if c.Misread != "" {
			e.Add(findings.Warning, checkClasses, c.Name+": "+c.Misread, "mend what it says, then let drift replace the nodes")
		}
		for _, term := range c.Empty {
			e.Add(findings.Warning, checkClasses, fmt.Sprintf(
				"%s: %s is empty and selects nothing; older versions took all that there is in the region", c.Name, term),
				"give the term tags, an id or a name, or remove it, before nodes are needed")
		}
		if e.AddUnknown("subnets and security groups of "+c.Name, c.Unknown) {
			continue
		}
		for _, s := range c.Subnets {
			if s.FreeIPs < fewIPs {
				e.Add(findings.Warning, checkClasses,
					fmt.Sprintf("%s: subnet %s in %s has %d free addresses", c.Name, s.ID, s.Zone, s.FreeIPs),
					"add a larger subnet of that zone to its subnetSelectorTerms, or give the VPC CNI prefixes or a second CIDR")
			}
		}
		owned := slices.DeleteFunc(slices.Clone(c.Groups), func(g SecurityGroup) bool { return !g.Owned })
		if len(owned) > 1 {
			e.Add(findings.Warning, checkClasses, fmt.Sprintf(
				"%s: %d security groups carry the tag kubernetes.io/cluster/%s (%s): the load balancer controller refuses nodes with more than one",
				c.Name, len(owned), e.clusterName(), groupIDs(owned)),
				"aws ec2 delete-tags --resources "+owned[1].ID+" --tags Key=kubernetes.io/cluster/"+e.clusterName())
		}
	}
	e.AddFine(since, checkClasses, fmt.Sprintf("%d are ready", len(e.f.Classes)))
}

// mendClass says what to do about a condition of a class.
func (e *examination) mendClass(condition string) string {
	tag := func(ids []string, what string) string {
		if len(ids) == 0 {
			ids = []string{what}
		}
		return "aws ec2 create-tags --resources " + strings.Join(ids, " ") +
			" --tags Key=karpenter.sh/discovery,Value=" + e.clusterName() + ", or name the ids in the class"
	}
	switch condition {
	case "SubnetsReady":
		return tag(e.f.EKS.Subnets, "SUBNET")
	case "SecurityGroupsReady":
		return tag(e.f.EKS.SecurityGroups, "SECURITY-GROUP")
	case "AMIsReady":
		return "mend its amiSelectorTerms; alias: al2023@latest always finds one"
	case "InstanceProfileReady":
		return "does its role exist? The stack makes " + naming.Names{Cluster: e.clusterName()}.NodeRole() +
			" unless nodeRole names another"
	}
	return "mend what it says; refresh looks again within five minutes"
}

func groupIDs(all []SecurityGroup) string {
	out := lists.Of(all, func(g SecurityGroup) string { return g.ID })
	return strings.Join(out, ", ")
}

func (e *examination) checkMissingRequests() {
	if e.f.API.Unknown != "" {
		return
	}
	since := len(e.List)
	for i, l := range e.f.Loose {
		if i == mostLoose {
			e.Add(findings.Warning, "pods without requests", fmt.Sprintf("%d more controllers", len(e.f.Loose)-mostLoose),
				"")
			break
		}
		e.Add(findings.Warning, "pods without requests",
			fmt.Sprintf("%d pods of %s %s ask for no %s: they are packed as if they needed none, and nodes get too small for them", l.Pods, l.Namespace, l.Owner, l.Lacks),
			fmt.Sprintf("kubectl -n %s set resources %s --requests=cpu=100m,memory=128Mi (what it really takes: kubectl -n %s top pods)", l.Namespace, l.Owner, l.Namespace))
	}
	e.AddFine(since, "pods without requests", "every pod asks for cpu and memory")
}

// checkAnnotations says which annotations of pods and nodes say nothing. Where there is none it says nothing either.
func (e *examination) checkAnnotations() {
	for i, u := range e.f.Unread {
		if i == mostLoose {
			e.Add(findings.Warning, "annotations", fmt.Sprintf("%d more", len(e.f.Unread)-mostLoose), "")
			break
		}
		e.Add(findings.Warning, "annotations", u.Object+": "+u.Message, "")
	}
}

// accessGroups returns the groups that access entries must name.
func accessGroups() []string {
	return []string{install.GroupProvision, install.GroupLifecycle, install.GroupDisrupt, install.GroupRefresh,
		install.GroupSpotInterruption,
		install.GroupReservationInterruption, install.GroupRebalance, install.GroupScheduledChange,
		install.GroupStateChange}
}
