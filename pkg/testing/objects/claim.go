package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// NewClaim is the claim that is stored for a launch, with our finalizer. The number is that of no other claim.
func NewClaim(l plan.Launch, pool cluster.Pool, number int, now time.Time) cluster.Claim {
	return cluster.Claim{Name: fmt.Sprintf("%s-%d", pool.Name, number), UID: fmt.Sprintf("uid-claim-%d", number),
		Pool: pool.Name, PoolUID: pool.UID, Class: l.Class, Created: now, Finalizer: true,
		Labels: Merge(l.Labels, map[string]string{v1.LabelNodePool: pool.Name, awsv1.LabelEC2NodeClass: l.Class}),
		Annotations: Merge(l.Annotations, map[string]string{v1.AnnotationNodePoolHash: pool.Hash,
			v1.AnnotationNodePoolHashVersion: v1.NodePoolHashVersion}),
		Requirements: l.Requirements, Requests: l.Requests, Taints: l.Taints, StartupTaints: l.Startup,
		ExpireAfter: pool.ExpireAfter, TerminationGrace: pool.TerminationGrace}
}

// AdoptedLabels returns the labels that an adoption puts on the claim: its class, its instance, and the partition of
// the claim given.
func AdoptedLabels(have, given cluster.Claim) map[string]string {
	set := map[string]string{awsv1.LabelEC2NodeClass: have.Class}
	if have.ProviderID != "" {
		set[v1.LabelInstance] = have.InstanceID()
	}
	if n := given.Labels[instancetypes.LabelPartition]; n != "" {
		set[instancetypes.LabelPartition] = n
	}
	return set
}

// SetStatus gives the claim the status of another. The time of a condition moves with its status only.
func SetStatus(have *cluster.Claim, given cluster.Claim, now time.Time) {
	have.ProviderID, have.NodeName, have.ImageID = given.ProviderID, given.NodeName, given.ImageID
	have.Capacity, have.Allocatable, have.LastPodEvent = given.Capacity, given.Allocatable, given.LastPodEvent
	var next []cluster.Condition
	for _, k := range given.Conditions {
		old := have.Condition(k.Type)
		if k.Since = old.Since; old.Status != k.Status || !slices.ContainsFunc(have.Conditions, IsType(k.Type)) {
			k.Since = now
		}
		next = append(next, k)
	}
	slices.SortFunc(next, func(a, b cluster.Condition) int { return strings.Compare(a.Type, b.Type) })
	have.Conditions = next
}

// IsType selects the conditions of a type.
func IsType(name string) func(cluster.Condition) bool {
	return func(k cluster.Condition) bool { return k.Type == name }
}

// IsWritable reports whether a write about the claim given meets the claim that is stored, which is nil for none. Only
// an annotation may come without a version.
func IsWritable(have *cluster.Claim, given cluster.Claim, annotates bool) bool {
	return have != nil && have.UID == given.UID && (have.Version == given.Version || annotates && given.Version == "")
}

// ClaimsOf are the claims of the instances, and those without the label of an instance, up to the first that is enough.
func ClaimsOf(all []cluster.Claim, instances []string, enough func(cluster.Claim) bool) []cluster.Claim {
	over := false
	return slices.DeleteFunc(all, func(c cluster.Claim) bool {
		id, named := c.Labels[v1.LabelInstance]
		drop := named && !slices.Contains(instances, id) || !named && over
		over = over || !named && enough != nil && enough(c)
		return drop
	})
}

// Merge is the labels or annotations of both; what stands in top wins.
func Merge(base, top map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

// ConflictError says that an object was changed or is gone; nothing was written.
type ConflictError struct{ What string }

// Error names the object.
func (e *ConflictError) Error() string { return e.What + " was changed meanwhile" }

// Conflict reports true.
func (e *ConflictError) Conflict() bool { return true }

// RefusedError says that an object holds what the API server refuses.
type RefusedError struct{ Labels []string }

// Error names the labels.
func (e *RefusedError) Error() string {
	return "labels " + strings.Join(e.Labels, ", ") + ": Invalid value"
}

// RefusedLabels are the labels.
func (e *RefusedError) RefusedLabels() []string { return e.Labels }

// NotFoundError says that an object does not exist.
type NotFoundError struct{ What string }

// Error names the object.
func (e *NotFoundError) Error() string { return e.What + " does not exist" }

// NotFound reports true.
func (e *NotFoundError) NotFound() bool { return true }
