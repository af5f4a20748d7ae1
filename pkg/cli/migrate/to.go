package migrate

import (
	"fmt"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/drift"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/scheduling/binpack"
)

// ReportTo returns what Joiner needs to take the cluster over, with what classes may launch.
func ReportTo(f Facts, sells binpack.Offerings) Report {
	r := Report{From: takeOverFrom(f)}
	if f.Autoscaler != nil {
		r.addAutoscaler(f)
	}
	for _, c := range f.CRDs {
		r.checkCRD(c)
	}
	for _, node := range f.Snapshot.StateNodes() {
		if node.Claim != nil {
			r.Nodes++
			r.adoptClaim(node)
		}
	}
	r.reportDrift(f.Snapshot, sells)
	r.reportOptions(f)
	for _, name := range f.Foreign {
		r.Findings.Add(findings.Note, "NodeClaim "+name, "its class is no EC2NodeClass; Joiner leaves it alone, and so nobody looks after it once its controller is gone", "")
	}
	for _, pool := range f.Kubelets {
		r.Findings.Add(findings.Blocks, "NodePool "+pool, "its nodes run by the kubelet block in its annotation "+v1.AnnotationKubeletConversion+", which Joiner does not read, like Karpenter from 1.1 on",
			"kubectl get nodepools,ec2nodeclasses -o yaml | joiner convert -f - moves it into the EC2NodeClass: apply that; then kubectl annotate nodepool "+pool+" "+v1.AnnotationKubeletConversion+"-")
	}
	r.reportNodeRoles(f)
	r.Steps = stepsTo(f, len(r.Settings) > 0)
	r.sortAll()
	return r
}

func takeOverFrom(f Facts) string {
	var all []string
	if k := f.Karpenter; k != nil {
		all = append(all, strings.TrimSpace("Karpenter "+k.Version))
	} else if f.Leader != "" {
		all = append(all, "Karpenter (leader "+f.Leader+")")
	}
	if a := f.Autoscaler; a != nil {
		all = append(all, strings.TrimSpace("Cluster Autoscaler "+a.Version))
	}
	if len(all) == 0 {
		return "nobody"
	}
	return strings.Join(all, " and ")
}

func (r *Report) checkCRD(c CRD) {
	for _, v := range c.Stored {
		if v != "v1" && (c.Name == "nodepools.karpenter.sh" || c.Name == "nodeclaims.karpenter.sh" ||
			c.Name == "ec2nodeclasses.karpenter.k8s.aws") {
			r.Findings.Add(findings.Note, "CRD "+c.Name, "objects may be stored as "+v,
				"setup rewrites them as v1; a cluster that does not serve v1 yet needs Karpenter 1.1 or newer first")
		}
	}
	if c.Webhook {
		r.Findings.Add(findings.Note, "CRD "+c.Name, "conversion asks a webhook, which Karpenter 1.0 needed",
			"setup takes it away; Karpenter 1.1 and newer do not miss it")
	}
	if strings.HasPrefix(c.Name, "provisioners.") || strings.HasPrefix(c.Name, "awsnodetemplates.") {
		r.Findings.Add(findings.Note, "CRD "+c.Name, "objects of Karpenter before 0.32 are not read",
			"joiner convert -f FILE makes NodePools and EC2NodeClasses of them")
	}
}

// adoptClaim says what of one NodeClaim must be right before others than its maker look after it.
func (r *Report) adoptClaim(node cluster.StateNode) {
	c := *node.Claim
	name := "NodeClaim " + c.Name
	if !r.isStable(c, "Joiner") {
		return
	}
	if !c.Finalizer || c.Labels[awsv1.LabelEC2NodeClass] != c.Class {
		r.addEdit(Adopt, c.Name, "it lacks the finalizer karpenter.sh/termination or the label of its class")
		r.Findings.Add(findings.Change, name, "it lacks the finalizer karpenter.sh/termination or the label of its class",
			"joiner migrate --apply")
	}
	if c.Annotations[awsv1.AnnotationInstanceTagged] != "true" &&
		c.Annotations[awsv1.AnnotationClusterNameTagged] != "true" && node.Node != nil {
		r.Findings.Add(findings.Note, name, "Karpenter has not tagged its instance with the cluster's name yet; Joiner finds instances by the tag "+awsv1.TagClusterName,
			"wait a minute, or tag it: aws ec2 create-tags --resources "+c.InstanceID()+" --tags Key="+awsv1.TagClusterName+",Value=CLUSTER")
	}
	if node.Node != nil && !node.Deleting() && node.Node.IsTaintedDisrupted() && c.Annotations[v1.AnnotationDisruptionCommand] == "" {
		r.addEdit(Untaint, node.Node.Name, "a disruption that Karpenter began and did not finish")
		r.Findings.Add(findings.Change, "Node "+node.Node.Name, "it carries "+v1.TaintDisrupted+" of a disruption that is not finished: its pods would be given new nodes and it would stay",
			"joiner migrate --apply, once Karpenter is scaled down")
	}
}

// isStable reports whether a NodeClaim is neither coming nor going, and says so otherwise; next is who takes over.
func (r *Report) isStable(c cluster.Claim, next string) bool {
	name := "NodeClaim " + c.Name
	switch {
	case !c.Deleting.IsZero():
		r.Findings.Add(findings.Note, name, "it is being deleted; "+next+" goes on with the drain where it stands", "")
		return false
	case c.ProviderID == "" && !c.Is(v1.ConditionLaunched):
		r.Findings.Add(findings.Blocks, name, "its launch is under way: "+next+" may launch a second instance for it (the first is found as leaked and ended)",
			"wait until it is launched, or delete it: kubectl delete nodeclaim "+c.Name)
		return false
	}
	return true
}

// reportDrift names the nodes that Joiner would find drifted and Karpenter did not: they would be replaced.
func (r *Report) reportDrift(s cluster.Snapshot, sells binpack.Offerings) {
	types := overlays.ByPool(s, sells)
	for _, v := range drift.DriftChanges(s, func(p cluster.Pool) []instancetypes.Type { return types(p) }) {
		if v.Reason == "" {
			continue
		}
		r.Findings.Add(findings.Blocks, "NodeClaim "+v.Claim,
			fmt.Sprintf("Joiner would call it drifted (%s: %s) and replace it within the budgets", v.Reason, v.Message),
			"look whether the change is meant; to keep the node for now: set disruption to report, or the annotation joiner.sh/disruption: report on its NodePool")
	}
}

// reportNodeRoles has the stack use the roles that EC2NodeClasses name: it fails where one exists that it would make.
func (r *Report) reportNodeRoles(f Facts) {
	if len(f.Roles) == 0 {
		return
	}
	const from = "spec.role of EC2NodeClasses"
	r.Settings = append(r.Settings, SettingLine{Name: "nodeRole", Value: f.Roles[0], From: from})
	if len(f.Roles) > 1 {
		r.Settings = append(r.Settings, SettingLine{Name: "nodeRoles", Value: strings.Join(f.Roles[1:], ","), From: from})
	}
	r.Findings.Add(findings.Note, "node role", "EC2NodeClasses name "+strings.Join(f.Roles, ", ")+": the stack makes no role then",
		"keep the access entry of each, or its line in aws-auth")
}

func stepsTo(f Facts, withSettings bool) []string {
	lines := ""
	if withSettings {
		lines = " and the lines for the settings"
	}
	out := []string{"joiner doctor --cluster CLUSTER: mend what it finds",
		"joiner deploy with mode observe" + lines + ": Joiner decides beside the present autoscaler and changes nothing",
		"joiner shadow: compare what Joiner would have done"}
	if k := f.Karpenter; k != nil {
		out = append(out, fmt.Sprintf("kubectl -n %s scale deployment %s --replicas 0, and wait until its lease is free (joiner migrate says so)", k.Namespace, k.Name))
	}
	if a := f.Autoscaler; a != nil {
		out = append(out, fmt.Sprintf("kubectl -n %s scale deployment %s --replicas 0", a.Namespace, a.Name))
	}
	out = append(out, "joiner migrate --apply: makes the changes listed here, none of which touches a pod or an instance", "joiner deploy with mode act")
	if f.Autoscaler != nil {
		out = append(out, "lower the desired size of the node groups step by step: kubectl drain the nodes; their pods come back on Joiner's nodes",
			"keep a small node group for what must run before Joiner does, or none: Joiner needs no node")
	}
	if f.Karpenter != nil {
		out = append(out, "when you are content: helm uninstall karpenter, but not karpenter-crd, which would delete the CRDs and every NodePool with them; "+
			"delete its queue, its EventBridge rules, and its launch templates: aws ec2 describe-launch-templates --filters Name=launch-template-name,Values=karpenter.k8s.aws/*")
	}
	return append(out, "the way back is open at any time: joiner migrate --back")
}
