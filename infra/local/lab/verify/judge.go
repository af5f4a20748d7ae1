package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/workload"
)

// What is said of pods that the scheduler says nothing about.
const (
	refusal   = "refused by the API server: "
	preempted = "pre-empted by a pod of higher priority"
)

// view is where the pods of the workload are.
type view struct {
	exists map[string]bool
	on     map[string]string // pods with a node, to its name
	said   map[string]string // pods without one, to what the scheduler said last
	uid    map[string]string
	holds  map[string][]string // values of the holds that pods tolerate
}

// readPods reads the pods of every namespace. Pods that are going away do not exist any more.
func (c *plane) readPods(ctx context.Context, pods []*corev1.Pod) (view, error) {
	v := view{exists: map[string]bool{}, on: map[string]string{}, said: map[string]string{}, uid: map[string]string{},
		holds: map[string][]string{}}
	ours := map[string]bool{}
	for _, p := range pods {
		ours[workload.PodKey(p)] = true
	}
	list, err := c.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		key := workload.PodKey(p)
		if !ours[key] || p.DeletionTimestamp != nil {
			continue
		}
		v.exists[key], v.uid[key], v.holds[key] = true, string(p.UID), translate.Pod(p).Holds
		if p.Spec.NodeName != "" {
			v.on[key] = p.Spec.NodeName
		} else {
			v.said[key] = unschedulableMessage(p)
		}
	}
	return v, nil
}

// judgeRound compares what the scheduler did with what the plan said.
func (t *trial) judgeRound(r *Round, v view) {
	pending := map[string]int{}
	reasons := map[string]*Reason{}
	for _, p := range t.pods {
		key := workload.PodKey(p)
		if _, ok := v.on[key]; ok {
			r.Scheduled++
			continue
		}
		pending[t.names.GroupOf(key)]++
		r.Pending++
		said := v.said[key]
		switch why, refused := t.refused[key]; {
		case refused:
			said = refusal + why
		case !v.exists[key]:
			said = preempted
		}
		why := withoutNumbers(said)
		if reasons[why] == nil {
			reasons[why] = &Reason{Why: why, Pod: key, Said: said}
		}
		reasons[why].Pods++
	}
	for group, n := range pending {
		r.Stranded += max(0, n-t.pending[group])
	}
	for group, n := range t.pending {
		r.Surprising += max(0, n-pending[group])
	}
	r.Moved = t.countMoved(v)
	for _, why := range slices.SortedFunc(maps.Values(reasons), func(a, b *Reason) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Why, b.Why))
	}) {
		r.Reasons = append(r.Reasons, *why)
	}
	r.TotalUSD = r.AddedUSD
	if n := len(t.report.Rounds); n > 0 {
		r.TotalUSD += t.report.Rounds[n-1].TotalUSD
	}
}

// countMoved counts pods on another node than the plan had for them; pods of one group may swap.
func (t *trial) countMoved(v view) int {
	sit := map[string]podsByGroup{}
	for key, node := range v.on {
		if sit[node] == nil {
			sit[node] = podsByGroup{}
		}
		sit[node][t.names.GroupOf(key)]++
	}
	n := 0
	for node, groups := range sit {
		for group, count := range groups {
			n += max(0, count-t.placed[node][group])
		}
	}
	return n
}

// withoutNumbers returns the scheduler's message without numbers of nodes, so that like pods have like words.
func withoutNumbers(said string) string {
	switch {
	case said == "":
		return "the scheduler said nothing"
	case strings.HasPrefix(said, refusal):
		_, why, _ := strings.Cut(said, " is invalid: ") // it begins with the pod's name
		return refusal + cmp.Or(why, said[len(refusal):])
	case said == preempted:
		return said
	}
	said, _, _ = strings.Cut(said, ". ") // what it tried beside filtering
	if _, rest, ok := strings.Cut(said, " nodes are available: "); ok {
		said = rest
	}
	var parts []string
	counted := regexp.MustCompile(`^\d+ (.*)$`)
	for part := range strings.SplitSeq(strings.TrimRight(strings.TrimSpace(said), "."), ", ") {
		if m := counted.FindStringSubmatch(part); m != nil {
			part = m[1]
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}
