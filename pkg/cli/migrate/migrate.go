package migrate

import (
	"cmp"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
)

// Facts holds what is known about the cluster.
type Facts struct {
	Snapshot    cluster.Snapshot
	Karpenter   *Controller // nil: none is installed
	Autoscaler  *Controller // Cluster Autoscaler, nil: none is installed
	Leader      string      // who holds Karpenter's leader lease, empty for nobody
	Joiner      string      // who of Joiner's functions holds a lease, empty for nobody
	Options     Options     // of Karpenter
	Buffers     []string    // CapacityBuffers, namespace/name
	CRDs        []CRD       // those of Karpenter's groups that are there
	Foreign     []string    // NodeClaims whose class is no EC2NodeClass
	Roles       []string    // of nodes, that EC2NodeClasses name
	Pinned      []string    // pods, namespace/name, that Cluster Autoscaler may not evict
	Annotations []Annotated // annotations of joiner.sh on NodePools that people wrote
	Written     []Written   // what Joiner wrote on NodePools and EC2NodeClasses for itself
	Kubelets    []string    // NodePools with a kubelet block in their annotations
}

// Controller is an installed autoscaler.
type Controller struct {
	Namespace, Name, Version string
	Replicas                 int64
}

// CRD is a definition as the cluster has it.
type CRD struct {
	Name    string
	Stored  []string // versions in which objects may be stored
	Webhook bool     // conversion asks a webhook
}

// Annotated is a NodePool with the keys of its annotations that only Joiner reads.
type Annotated struct {
	Pool string
	Keys []string
}

// Written is an object with the keys of its annotations that Joiner wrote and nobody else reads.
type Written struct {
	Kind, Name string // NodePool or EC2NodeClass
	Keys       []string
}

// WrittenKeys are the annotations of NodePools and EC2NodeClasses that Joiner writes for itself. Others of joiner.sh are
// people's.
func WrittenKeys() []string {
	return []string{v1.AnnotationDryRunResult, v1.AnnotationHashedSpec, v1.AnnotationObservedMemory, v1.AnnotationObservedShortfalls,
		v1.AnnotationRegistrationHistory, v1.AnnotationZonalShifts}
}

// Do is the act of a change.
type Do string

// The changes.
const (
	Adopt   Do = "adopt"   // put finalizer and class label on a NodeClaim
	Untaint Do = "untaint" // take karpenter.sh/disrupted off a node
	Open    Do = "open"    // take joiner.sh/nominated-pods-only off a node
	Admit   Do = "admit"   // take the taints of NodeRollouts off a node
	Unmark  Do = "unmark"  // take the mark of an unfinished disruption off a NodeClaim
	Forget  Do = "forget"  // take what Joiner wrote for itself off a NodePool or an EC2NodeClass
	End     Do = "end"     // delete a NodeClaim whose instance is stopped
)

// Edit is one change to one object. It may be repeated.
type Edit struct {
	Do   Do     `json:"do"`   // adopt, untaint, open, admit, unmark, forget or end
	Name string `json:"name"` // of the NodeClaim or node; of others after their kind, as NodePool/general
	Why  string `json:"why"`  // reason, a phrase for people
}

// Report holds what to know and do.
type Report struct {
	From     string        `json:"from"`               // who runs the nodes now
	Nodes    int           `json:"nodes"`              // nodes that go on as they are, under the other hand
	Findings findings.List `json:"findings,omitempty"` // the gravest first
	Edits    []Edit        `json:"edits,omitempty"`    // sorted by Do, then Name; nil for none
	// what cdk.json needs for Joiner to do what Karpenter was told
	Settings []SettingLine `json:"settings,omitempty"`
	Steps    []string      `json:"steps"`            // in order, with commands
	Groups   []NodeGroup   `json:"groups,omitempty"` // node groups, sorted by name
}

// IsReady reports whether nothing stands in the way.
func (r Report) IsReady() bool { return !r.Findings.Has(findings.Blocks) }

func (r *Report) addEdit(do Do, name, why string) {
	r.Edits = append(r.Edits, Edit{Do: do, Name: name, Why: why})
}

func (r *Report) sortAll() {
	order := []findings.Level{findings.Blocks, findings.Change, findings.Note}
	slices.SortStableFunc(r.Findings, func(a, b findings.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Level), slices.Index(order, b.Level)),
			cmp.Compare(a.About, b.About), cmp.Compare(a.What, b.What))
	})
	slices.SortFunc(r.Settings, func(a, b SettingLine) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.Do, b.Do),
			cmp.Compare(a.Name, b.Name))
	})
}
