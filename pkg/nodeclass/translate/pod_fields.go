package translate

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"unique"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// PodFields holds the parts of a ListedPod, for whoever stores pods. Pods of one shape have the same pointer. Times are
// seconds of the epoch. What it points to must not be changed.
type PodFields struct {
	Shape        *cluster.Pod                 // without what stands below
	Name, UID    string                       // of the pod
	Node         string                       // its name; empty while it has none
	Labels       map[string]string            // all, those of the shape included
	NodeAffinity [][]requirements.Requirement // required terms; nil for none
	Claims       []string                     // names of volume claims

	Created, Started, Bound, ReadySince, Deleting int64 // those of cluster.Pod with these names
}

// SharesLabels reports whether the labels are those of the shape.
func (f *PodFields) SharesLabels() bool { return maps.Equal(f.Labels, f.Shape.Labels) }

// SharesAffinity reports whether the affinity to nodes is that of the shape.
func (f *PodFields) SharesAffinity() bool {
	own, shared := f.NodeAffinity, f.Shape.NodeAffinity
	return own == nil && shared == nil || reflect.DeepEqual(own, shared)
}

// Fields returns the parts of the pod.
func (p *ListedPod) Fields() PodFields {
	return PodFields{Shape: p.shape, Name: p.name, UID: p.uid, Node: p.node.Value(), Labels: p.labels,
		NodeAffinity: p.nodeAffinity, Claims: p.claims, Created: p.created, Started: p.started, Bound: p.bound,
		ReadySince: p.readySince, Deleting: p.deleting}
}

// ListFields is the pod that consists of these. Its shape should be one that ShareShape returned, so that others share
// it.
func ListFields(f PodFields) *ListedPod {
	return &ListedPod{shape: f.Shape, name: f.Name, uid: f.UID, node: unique.Make(f.Node), labels: f.Labels,
		nodeAffinity: f.NodeAffinity, claims: f.Claims, created: f.Created, started: f.Started, bound: f.Bound,
		readySince: f.ReadySince, deleting: f.Deleting}
}

// ShareShape is an equal shape that is known, but for its labels and affinity, or this one, which is known from now on.
func (s *PodShapes) ShareShape(p *cluster.Pod) *cluster.Pod { return s.share(p) }

// All are the pods in their order.
func (s SortedPods) All() iter.Seq[*ListedPod] { return slices.Values(s.list) }

// Len returns the number of pods.
func (s SortedPods) Len() int { return len(s.list) }
