package v1

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// NodePoolHashVersion names the way NodePool.Hash is made. It is Karpenter's own string because the numbers are
// Karpenter's own, so that a cluster can change over, either way, without its nodes drifting.
const NodePoolHashVersion = "v3"

// Hash is the static drift hash of the pool's template: labels, annotations, taints, node class reference and times,
// without the requirements. Two pools have the same hash exactly when a node of one would be right for the other in
// these things.
func (p *NodePool) Hash() string {
	template := p.Spec.Template
	if template.Spec.ExpireAfter.Duration == nil {
		template.Spec.ExpireAfter = NillableDuration{} // Never and not given are the same to a node
	}
	return StaticHash(template)
}

// StaticHash is the hash that static drift compares: the order of lists does not count, nor whether an empty field was
// given. The names of the Go types and fields of v, and the order of the fields, are part of it: changing one makes
// every node of every cluster drift. It panics for values that cannot be hashed (functions, channels), which is a
// mistake in the types of this module and found by its tests.
func StaticHash(v any) string {
	sum, err := hashstructure.Hash(v, hashstructure.FormatV2, &hashstructure.HashOptions{
		SlicesAsSets:    true,
		IgnoreZeroValue: true,
		ZeroNil:         true,
	})
	if err != nil {
		panic(fmt.Sprintf("hash %T: %v", v, err))
	}
	return strconv.FormatUint(sum, 10)
}
