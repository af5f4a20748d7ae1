package migrate

import (
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
)

// ReportBack returns what the cluster needs before Karpenter looks after its nodes again.
func ReportBack(f Facts) Report {
	r := Report{From: "Joiner"}
	if f.Joiner != "" {
		r.Findings.Add(findings.Note, "Lease joiner-system", "Joiner works at this moment ("+f.Joiner+")",
			"deploy with mode observe before joiner migrate --back --apply, or what is changed here may be changed again")
	}
	if f.Karpenter == nil {
		r.Findings.Add(findings.Blocks, "Deployment karpenter", "Karpenter is not installed",
			"install the chart, 1.1 or newer, with replicas 0, its IAM role and its queue; helm's --skip-crds keeps the CRDs as they are")
	}
	for _, node := range f.Snapshot.StateNodes() {
		switch {
		case node.Claim == nil:
		case node.Standby() && node.Claim.Deleting.IsZero():
			r.endStopped(node.Claim.Name)
		default:
			r.Nodes++
			r.releaseClaim(node)
		}
	}
	for _, a := range f.Annotations {
		r.Findings.Add(findings.Note, "NodePool "+a.Pool, "Karpenter does not read "+strings.Join(a.Keys, ", "), "")
	}
	for _, w := range f.Written {
		keys := strings.Join(w.Keys, ", ")
		r.addEdit(Forget, w.Kind+"/"+w.Name, "Joiner wrote "+keys+" for itself")
		r.Findings.Add(findings.Change, w.Kind+" "+w.Name, "it has Joiner's own "+keys+
			", which would be out of date when Joiner comes again", "joiner migrate --back --apply")
	}
	r.Steps = stepsBack(f)
	r.sortAll()
	return r
}

// endStopped says that a NodeClaim of stopped capacity must go.
func (r *Report) endStopped(claim string) {
	r.addEdit(End, claim, "Karpenter would take its stopped instance for one that is gone")
	r.Findings.Add(findings.Change, "NodeClaim "+claim, "it is stopped capacity, which Karpenter does not know",
		"joiner migrate --back --apply deletes it; Karpenter terminates its instance")
}

// releaseClaim says what of one NodeClaim Karpenter could not know what to do with.
func (r *Report) releaseClaim(node cluster.StateNode) {
	c := *node.Claim
	name := "NodeClaim " + c.Name
	if !r.isStable(c, "Karpenter") {
		return
	}
	if c.Annotations[v1.AnnotationDisruptionCommand] != "" {
		r.addEdit(Unmark, c.Name, "a disruption that Joiner began and did not finish")
		r.Findings.Add(findings.Change, name, "a disruption of Joiner's is not finished",
			"joiner migrate --back --apply, once Joiner only observes")
		if node.Node != nil && node.Node.IsTaintedDisrupted() {
			r.addEdit(Untaint, node.Node.Name, "a disruption that Joiner began and did not finish")
		}
	}
	if node.Node != nil && slices.ContainsFunc(node.Node.Taints, cluster.Taint.IsNomination) {
		r.addEdit(Open, node.Node.Name, "Karpenter does not know holds and would never take it off")
		r.Findings.Add(findings.Change, "Node "+node.Node.Name, "it is held for the pods it was planned for ("+v1.TaintHold+"), which Karpenter would never end", "joiner migrate --back --apply")
	}
	if node.Node != nil && slices.ContainsFunc(node.Node.Taints, cluster.Taint.IsFailedRevision) {
		r.addEdit(Admit, node.Node.Name, "Karpenter does not know NodeRollouts and would never take it off")
		r.Findings.Add(findings.Change, "Node "+node.Node.Name, "a NodeRollout rolls it back ("+v1.TaintFailedRevision+"), which Karpenter does not", "joiner migrate --back --apply")
	} else if node.Node != nil && slices.ContainsFunc(node.Node.Taints, cluster.Taint.IsPreviousRevision) {
		r.addEdit(Admit, node.Node.Name, "Karpenter does not know NodeRollouts and would never take it off")
		r.Findings.Add(findings.Change, "Node "+node.Node.Name, "a NodeRollout drains another ("+v1.TaintPreviousRevision+"), which Karpenter does not", "joiner migrate --back --apply")
	}
}

func stepsBack(f Facts) []string {
	where := "kubectl -n kube-system scale deployment karpenter"
	if k := f.Karpenter; k != nil {
		where = fmt.Sprintf("kubectl -n %s scale deployment %s", k.Namespace, k.Name)
	}
	return []string{"joiner deploy with mode observe: Joiner changes nothing any more",
		"joiner migrate --back --apply: makes the changes listed here",
		where + " --replicas 2: Karpenter finds its NodeClaims, finalizers, hashes and tags as it would have left them",
		"wait until it leads (joiner doctor names the holder of the lease): only then the stack's deletion leaves finalizers alone", "npx aws-cdk@2 destroy --app cdk.out, in the release"}
}
