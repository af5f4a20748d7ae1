package migrate

import (
	"fmt"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// Back is what the cluster needs before Karpenter looks after its nodes again.
func Back(f Facts) Report {
	r := Report{From: "Joiner"}
	if f.Joiner != "" {
		r.find(Note, "Lease joiner-system", "Joiner works at this moment ("+f.Joiner+")", "deploy with mode observe before joiner migrate --back --apply, or what is changed here may be changed again")
	}
	if f.Karpenter == nil {
		r.find(Blocks, "Deployment karpenter", "Karpenter is not installed", "install the chart, 1.1 or newer, with replicas 0, its IAM role and its queue; helm's --skip-crds keeps the CRDs as they are")
	}
	for _, h := range f.Snapshot.Hosts() {
		if h.Claim != nil {
			r.Nodes++
			r.release(h)
		}
	}
	for _, a := range f.Annotations {
		r.find(Note, "NodePool "+a.Pool, "Karpenter does not read "+strings.Join(a.Keys, ", "), "")
	}
	r.Steps = stepsBack(f)
	r.sort()
	return r
}

// release says what of one NodeClaim Karpenter could not know what to do with.
func (r *Report) release(h cluster.Host) {
	c := *h.Claim
	name := "NodeClaim " + c.Name
	if !r.settled(c, "Karpenter") {
		return
	}
	if c.Annotations[cluster.AnnotationDisruption] != "" {
		r.edit(Unmark, c.Name, "a disruption that Joiner began and did not finish")
		r.find(Change, name, "a disruption of Joiner's is not finished", "joiner migrate --back --apply, once Joiner only observes")
		if h.Node != nil && condemned(*h.Node) {
			r.edit(Untaint, h.Node.Name, "a disruption that Joiner began and did not finish")
		}
	}
	if h.Node != nil && slices.ContainsFunc(h.Node.Taints, cluster.Taint.Hold) {
		r.edit(Open, h.Node.Name, "Karpenter does not know holds and would never take it off")
		r.find(Change, "Node "+h.Node.Name, "it is held for the pods it was planned for ("+v1.TaintHold+"), which Karpenter would never end", "joiner migrate --back --apply")
	}
}

func stepsBack(f Facts) []string {
	where := "kubectl -n kube-system scale deployment karpenter"
	if k := f.Karpenter; k != nil {
		where = fmt.Sprintf("kubectl -n %s scale deployment %s", k.Namespace, k.Name)
	}
	return []string{"make deploy with mode observe: Joiner changes nothing any more", "joiner migrate --back --apply: makes the changes listed here",
		where + " --replicas 2: Karpenter finds its NodeClaims, finalizers, hashes and tags as it would have left them",
		"wait until it leads (joiner doctor names the holder of the lease): only then the stack's deletion leaves finalizers alone", "make destroy"}
}
