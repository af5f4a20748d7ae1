package provision

import (
	"slices"
	"sync"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// refusedFor is the time for which a pod for which the API server refused a NodeClaim is planned without what was
// refused. Its constraints never change; the schema or a policy may.
const refusedFor = time.Hour

// refusedClaims are the pods for which the API server refused a NodeClaim, by key and UID. The zero value is ready; it
// may be used by several goroutines.
type refusedClaims struct {
	mu   sync.Mutex
	pods map[string]refusedPod
}

// refusedPod is a pod that is planned without its preferences for nodes, or not at all where they were not the reason.
type refusedPod struct {
	whole bool
	why   string
	until time.Time
}

func refusalKey(p *cluster.Pod) string { return p.Key() + "\x00" + p.UID }

// noteRefusal notes that the API server refused the NodeClaim of the launch for what it says about the labels. Pods of
// the launch that name one of them gave the value; where none does, any may have. Preferences go first.
func (r *refusedClaims) noteRefusal(s cluster.Snapshot, l plan.Launch, labels []string, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var preferring, requiring, rest []*cluster.Pod
	for i := range s.Pods {
		p := &s.Pods[i]
		if !slices.Contains(l.Pods, p.Key()) {
			continue
		}
		switch preferred, required := namesLabel(p, labels); {
		case preferred:
			preferring = append(preferring, p)
		case required:
			requiring = append(requiring, p)
		default:
			rest = append(rest, p)
		}
	}
	if len(preferring)+len(requiring) == 0 {
		for _, p := range rest {
			if len(p.NodePrefers) > 0 {
				preferring = append(preferring, p)
			}
		}
		if len(preferring) == 0 {
			requiring = rest
		}
	}
	if r.pods == nil {
		r.pods = map[string]refusedPod{}
	}
	until := s.Now.Add(refusedFor)
	for _, p := range preferring {
		r.pods[refusalKey(p)] = refusedPod{until: until}
	}
	for _, p := range requiring {
		r.pods[refusalKey(p)] = refusedPod{whole: true, until: until,
			why: "the API server refuses a NodeClaim for it: " + why}
	}
}

// namesLabel reports whether what the pod prefers of its node, or requires of it, names one of the labels.
func namesLabel(p *cluster.Pod, labels []string) (preferred, required bool) {
	named := func(r requirements.Requirement) bool { return slices.Contains(labels, r.Key) }
	anyNamed := func(term []requirements.Requirement) bool { return slices.ContainsFunc(term, named) }
	preferred = slices.ContainsFunc(p.NodePrefers,
		func(w cluster.WeightedRequirements) bool { return anyNamed(w.Requirements) })
	required = anyNamed(requirements.FromLabels(p.NodeSelector).All()) ||
		slices.ContainsFunc(p.NodeAffinity, anyNamed) || slices.ContainsFunc(p.VolumeZones, anyNamed)
	return preferred, required
}

// withoutRefused is the snapshot in which these pods ask for nothing that was refused. The one given is not changed.
func (r *refusedClaims) withoutRefused(s cluster.Snapshot) cluster.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, x := range r.pods {
		if s.Now.After(x.until) {
			delete(r.pods, key)
		}
	}
	if len(r.pods) == 0 {
		return s
	}
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		p := &s.Pods[i]
		x, known := r.pods[refusalKey(p)]
		if !known || p.NodeName != "" {
			continue
		}
		p.NodePrefers = nil
		if x.whole {
			p.Unmodelled = append(slices.Clone(p.Unmodelled), x.why)
		}
	}
	return s
}

// noteRefusedClaim makes a refusal by the API server of what pods ask for an outcome: the next pass plans without it.
// Any other error is returned.
func (l *claimLauncher) noteRefusedClaim(want plan.Launch, err error) error {
	labels, refused := controllers.RefusedLabels(err)
	if !refused || len(want.Pods) == 0 {
		return err
	}
	l.p.Log.Warn("the API server refuses a NodeClaim; its pods are planned without what it refuses", "pods",
		plan.NamePods(want.Pods), "labels", labels, "error", err)
	l.p.Process.refused.noteRefusal(l.s, want, labels, err.Error())
	return nil
}
