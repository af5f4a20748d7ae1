package translate

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
	"unique"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// ListedPod is a pod in little memory: what it has in common with others stands once for all of them. What it points to
// must not be changed.
type ListedPod struct {
	Shape        *cluster.Pod                 // without what stands below; pods of one shape have the same pointer
	Name, UID    string                       // of the pod
	Node         unique.Handle[string]        // its name; empty while it has none
	Labels       map[string]string            // all, those of the shape included
	NodeAffinity [][]requirements.Requirement // required terms; nil for none
	Claims       []string                     // names of volume claims

	// those of cluster.Pod with these names, in seconds of the epoch
	Created, Started, Bound, ReadySince, Deleting int64
}

// SharesLabels reports whether the labels are those of the shape.
func (p *ListedPod) SharesLabels() bool { return maps.Equal(p.Labels, p.Shape.Labels) }

// SharesAffinity reports whether the affinity to nodes is that of the shape.
func (p *ListedPod) SharesAffinity() bool {
	own, shared := p.NodeAffinity, p.Shape.NodeAffinity
	return own == nil && shared == nil || reflect.DeepEqual(own, shared)
}

// HasNode reports whether the pod has a node.
func (p *ListedPod) HasNode() bool { return p.Node.Value() != "" }

// Pod is the whole pod. What it points to is shared with others and must not be changed.
func (p *ListedPod) Pod() cluster.Pod {
	out := *p.Shape
	out.Name, out.UID, out.NodeName = p.Name, p.UID, p.Node.Value()
	out.Labels, out.NodeAffinity, out.UnreadClaims = p.Labels, p.NodeAffinity, p.Claims
	out.Created, out.Started, out.Bound = timeOf(p.Created), timeOf(p.Started), timeOf(p.Bound)
	out.ReadySince, out.Deleting = timeOf(p.ReadySince), timeOf(p.Deleting)
	return out
}

func timeOf(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// PodShapes remembers what pods have in common, as long as one of them is kept. The zero value is ready, and may be
// used by several at once.
type PodShapes struct {
	mu    sync.Mutex
	known map[shapeKey]weak.Pointer[cluster.Pod]
	sweep int // so many are swept
}

// shapeKey holds what pods of one shape have in common at least. Of each, the latest shape is known.
type shapeKey struct {
	namespace, controller, phase string
	ready                        bool
}

// ListPod translates a pod with the names of the volume claims that it uses.
func (s *PodShapes) ListPod(p *corev1.Pod) *ListedPod {
	p, why := boundPod(p)
	whole := smallPod(p)
	whole.Unmodelled = boundReasons(slices.Concat(why, whole.Unmodelled))
	whole.Untried = isUntried(p)
	out := &ListedPod{Name: whole.Name, UID: whole.UID, Node: unique.Make(whole.NodeName), Labels: whole.Labels,
		NodeAffinity: whole.NodeAffinity, Claims: claimNames(p), Created: whole.Created.Unix(),
		Started: whole.Started.Unix(), Bound: whole.Bound.Unix(), ReadySince: whole.ReadySince.Unix(),
		Deleting: whole.Deleting.Unix()}
	whole.Name, whole.UID, whole.NodeName = "", "", ""
	whole.Created, whole.Started, whole.Bound = time.Time{}, time.Time{}, time.Time{}
	whole.ReadySince, whole.Deleting = time.Time{}, time.Time{}
	out.Shape = s.ShareShape(&whole)
	if out.SharesLabels() {
		out.Labels = out.Shape.Labels
	}
	if out.SharesAffinity() {
		out.NodeAffinity = out.Shape.NodeAffinity
	}
	return out
}

// ShareShape is an equal shape that is known, but for its labels and affinity, or this one, which is known from now on.
func (s *PodShapes) ShareShape(p *cluster.Pod) *cluster.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := shapeKey{p.Namespace, p.Controller, p.Phase, p.Ready}
	if have := s.known[key].Value(); have != nil && sameShape(*have, *p) {
		return have
	}
	clipLists(p)
	if s.known == nil {
		s.known = map[shapeKey]weak.Pointer[cluster.Pod]{}
	}
	if len(s.known) >= s.sweep {
		maps.DeleteFunc(s.known, func(_ shapeKey, w weak.Pointer[cluster.Pod]) bool { return w.Value() == nil })
		s.sweep = 2*len(s.known) + fewShapes
	}
	s.known[key] = weak.Make(p)
	return p
}

// fewShapes are not worth a sweep.
const fewShapes = 100

// sameShape compares all that does not stand in a ListedPod beside its shape.
func sameShape(a, b cluster.Pod) bool {
	a.Labels, a.NodeAffinity, b.Labels, b.NodeAffinity = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// clipLists has whoever appends to a list of the shape make another.
func clipLists(p *cluster.Pod) {
	p.Need.Extended, p.NodeAffinity, p.NodePrefers = slices.Clip(p.Need.Extended), slices.Clip(p.NodeAffinity),
		slices.Clip(p.NodePrefers)
	p.Tolerations, p.Holds, p.Spread = slices.Clip(p.Tolerations), slices.Clip(p.Holds), slices.Clip(p.Spread)
	p.Affinity, p.AntiAffinity = slices.Clip(p.Affinity), slices.Clip(p.AntiAffinity)
	p.Prefers, p.Avoids = slices.Clip(p.Prefers), slices.Clip(p.Avoids)
	p.HostPorts, p.Unmodelled = slices.Clip(p.HostPorts), slices.Clip(p.Unmodelled)
}
