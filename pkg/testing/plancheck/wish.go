package plancheck

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// Labels of nodes, beside those of the placement's nodes.
const (
	labelType            = "node.kubernetes.io/instance-type"
	labelArch            = "kubernetes.io/arch"
	labelOS              = "kubernetes.io/os"
	labelRegion          = "topology.kubernetes.io/region"
	labelEBSZone         = "topology.ebs.csi.aws.com/zone"
	labelReservation     = "karpenter.k8s.aws/capacity-reservation-id"
	labelReservationKind = "karpenter.k8s.aws/capacity-reservation-type"
	labelInterruptible   = "karpenter.k8s.aws/capacity-reservation-interruptible"
)

// labelRequirement is a requirement, read by its fields: what the algebra makes of them is not believed here.
type labelRequirement struct {
	Key       string
	Not       bool
	Values    []string
	Min       *int64
	Max       *int64
	MinValues int
	Present   bool
}

// rawRequirement is the packer's type for a requirement.
type rawRequirement interface {
	~struct {
		Key       string   `json:"key"`
		Not       bool     `json:"not,omitempty"`
		Values    []string `json:"values,omitempty"`
		Min       *int64   `json:"min,omitempty"`
		Max       *int64   `json:"max,omitempty"`
		MinValues int      `json:"minValues,omitempty"`
		Present   bool     `json:"present,omitempty"`
	}
}

func labelRequirements[R rawRequirement](list []R) []labelRequirement {
	out := make([]labelRequirement, len(list))
	for i, r := range list {
		out[i] = labelRequirement(r)
	}
	return out
}

// anyMet reports whether all wishes of some term are met. A term without wishes is met by nothing.
func anyMet[R rawRequirement](terms [][]R, labels map[string]string) bool {
	return slices.ContainsFunc(terms, func(t []R) bool {
		return len(t) > 0 && !slices.ContainsFunc(labelRequirements(t),
			func(w labelRequirement) bool { return !w.isMet(labels) })
	})
}

// isMet reports whether a node with the labels is what is wished for.
func (w labelRequirement) isMet(labels map[string]string) bool {
	v, there := labels[w.Key]
	bounded := w.Min != nil || w.Max != nil
	switch {
	case !there && w.Not:
		return len(w.Values) > 0 && !bounded && !w.Present
	case !there:
		return len(w.Values) == 0 && !w.Present
	case slices.Contains(w.Values, v) == w.Not:
		return false
	case !bounded:
		return true
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return err == nil && (w.Min == nil || n >= *w.Min) && (w.Max == nil || n <= *w.Max)
}

// singleValue returns the one value that the wish allows, if there is just one.
func (w labelRequirement) singleValue() (string, bool) {
	if w.Not || len(w.Values) != 1 {
		return "", false
	}
	return w.Values[0], true
}

func (w labelRequirement) String() string {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if w.Min != nil {
		lo = *w.Min
	}
	if w.Max != nil {
		hi = *w.Max
	}
	return fmt.Sprintf("%s not=%t %v %d..%d", w.Key, w.Not, w.Values, lo, hi)
}

// podSuits reports whether node selector, required node affinity and, unless bare, volumes let the pod be on a node
// with these labels.
func podSuits(p *cluster.Pod, labels map[string]string, bare bool) bool {
	for k, v := range p.NodeSelector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	if len(p.NodeAffinity) > 0 && !anyMet(p.NodeAffinity, labels) {
		return false
	}
	if bare || len(p.VolumeZones) == 0 {
		return true
	}
	return anyMet(p.VolumeZones, labels)
}

// selectorMatches reports whether the selector picks the labels; none picks nothing.
func selectorMatches(s *cluster.Selector, labels map[string]string) bool {
	return s != nil && !slices.ContainsFunc(labelRequirements(s.Requirements),
		func(w labelRequirement) bool { return !w.isMet(labels) })
}

// keepsOut returns the first taint that the pod does not tolerate and that keeps pods out, if there is one.
func keepsOut(p *cluster.Pod, taints []cluster.Taint) (cluster.Taint, bool) {
	for _, t := range taints {
		if t.Effect == "PreferNoSchedule" {
			continue
		}
		tolerated := slices.ContainsFunc(p.Tolerations, func(tol cluster.Toleration) bool {
			if tol.Effect != "" && tol.Effect != t.Effect || tol.Key != "" && tol.Key != t.Key {
				return false
			}
			return tol.Operator == "Exists" || tol.Key != "" && (tol.Operator == "" || tol.Operator == "Equal") &&
				tol.Value == t.Value
		})
		if !tolerated {
			return t, true
		}
	}
	return cluster.Taint{}, false
}

// amountsOf reads a list of resources.
func amountsOf(l resources.List) resourceAmounts {
	out := resourceAmounts{"cpu": l.CPU, "memory": l.Memory, "ephemeral-storage": l.Ephemeral, "pods": l.Pods}
	for _, e := range l.Extended {
		out[e.Name] = e.Count
	}
	return out
}

func (a resourceAmounts) String() string {
	var parts []string
	for k, v := range a { // sorted below
		if v != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", k, v))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
