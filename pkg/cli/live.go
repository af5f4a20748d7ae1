package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/workload"
)

// planCluster plans for the pods of a cluster.
func planCluster(ctx context.Context, f planFlags, rules cluster.Settings, term terminalOutput) error {
	if f.pools != "" {
		return &inputError{errors.New("--nodepools goes with -f; --compare is for clusters")}
	}
	var m workload.Manifests
	if f.compare != "" { // what is wrong with a file is said before a cluster is read
		var err error
		if m, err = f.readChanges(term); err != nil {
			return &inputError{err}
		}
	}
	l, err := f.connectCluster()
	if _, ok := errors.AsType[*inputError](err); ok {
		return &inputError{fmt.Errorf("no workload given with -f, and %w", err)}
	}
	if err != nil {
		return err
	}
	s, err := f.readSnapshot(ctx, term, l)
	if err != nil {
		return err
	}
	s.Rules = rules
	if f.scratch {
		s = withoutPoolNodes(s)
	}
	places := newEditPlaces(ctx, l)
	spec := func(key string) *corev1.PodSpec {
		p := places.pod(key)
		return &p.Spec
	}
	before := planSnapshot(s, l.name, spec, term)
	if f.compare == "" {
		return f.showPlan(term, before)
	}
	return f.showDifference(term, before, planSnapshot(withManifests(s, m), l.name, spec, term))
}

// planSnapshot decides as a pass of provision does, and says in groups what came out. spec is that of a pod, empty where
// nobody knows it.
func planSnapshot(s cluster.Snapshot, name string, spec func(key string) *corev1.PodSpec,
	term terminalOutput) workload.Placement {
	var waiting []string
	groups := map[string]string{}
	for _, p := range s.Pods {
		if groups[p.Key()] = groupOf(p); p.Provisionable() {
			waiting = append(waiting, p.Key())
		}
	}
	term.writeMessage("cluster %s: %d pods wait, %d nodes, %d NodeClaims, %d NodePools, %d instance types", name,
		len(waiting), len(s.Nodes), len(s.Claims), len(s.Pools), len(s.Catalog.Types))
	for _, p := range s.Pools {
		if !p.Ready {
			term.writeMessage("NodePool %s is not used: %s", p.Name, p.Message)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt(len(waiting))))
	place := func(s cluster.Snapshot) workload.Placement {
		return workload.SummarizePlan(name, waiting, func(key string) string { return groups[key] },
			provisioning.Decide(s).Plan)
	}
	var out workload.Placement
	_ = term.withProgress("packing", func() error { // it cannot fail
		took := MeasureWork(func() { out = place(s) })
		took.NoteIn(&out)
		addWhatIf(out.Unplaced, s, func(key string) string { return groups[key] }, spec)
		out.PreferencesUSD = pricePreferences(s, out, place)
		return nil
	})
	return out
}

// groupOf names what made the pod, as namespace/name: its name without what its controller put behind.
func groupOf(p cluster.Pod) string {
	name := p.Name
	cut := func(label, sep string) bool {
		v := p.Labels[label]
		i := strings.LastIndex(name, sep+v+"-")
		if v == "" || i <= 0 {
			return false
		}
		name = name[:i]
		return true
	}
	switch {
	case p.Virtual || p.Owner == cluster.OwnerNone || p.Owner == cluster.OwnerNode:
	case cut("pod-template-hash", "-"):
	case p.Labels["batch.kubernetes.io/job-name"] != "":
		name = p.Labels["batch.kubernetes.io/job-name"]
	default:
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
	}
	return p.Namespace + "/" + name
}

// withoutPoolNodes is the cluster without the nodes of NodePools: their pods wait for a node, but for those of
// DaemonSets and of the node itself.
func withoutPoolNodes(s cluster.Snapshot) cluster.Snapshot {
	gone := map[string]bool{}
	for _, node := range s.StateNodes() {
		if node.Node != nil && node.Pool() != "" {
			gone[node.Node.Name] = true
		}
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return gone[n.Name] })
	s.Claims = nil
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Counted, s.Pools[i].Uncounted = resources.List{}, true
	}
	var pods []cluster.Pod
	for _, p := range s.Pods {
		if gone[p.NodeName] {
			if !p.Reschedulable() {
				continue
			}
			p.NodeName, p.Phase, p.Unscheduled, p.Ready, p.Holds = "", "Pending", true, false, nil
		}
		if p.NodeName == "" {
			p.Nominated = ""
		}
		pods = append(pods, p)
	}
	s.Pods = pods
	return s
}

// withManifests is the cluster with the pools and so on of m in place of those of the same name.
func withManifests(s cluster.Snapshot, m workload.Manifests) cluster.Snapshot {
	s.Classes = slices.Clone(s.Classes)
	for i := range m.Classes {
		for j, have := range s.Classes {
			if have.Name == m.Classes[i].Name {
				s.Classes[j] = resolvedLike(nodeclass.DescribeClass(&m.Classes[i]), have)
			}
		}
	}
	s.Pools = slices.Clone(s.Pools)
	for i := range m.Pools {
		p := translate.Pool(&m.Pools[i], s.Classes)
		if why := nodeclass.PoolProblems(&m.Pools[i]); len(why) > 0 {
			p.Ready, p.Message = false, strings.Join(why, "; ")
		}
		j := slices.IndexFunc(s.Pools, func(have cluster.Pool) bool { return have.Name == p.Name })
		if j < 0 {
			s.Pools = append(s.Pools, p)
			continue
		}
		p.UID, p.Counted, p.Uncounted = s.Pools[j].UID, s.Pools[j].Counted, s.Pools[j].Uncounted
		s.Pools[j] = p
	}
	s.Overlays = slices.Clone(s.Overlays)
	for i := range m.Overlays {
		o := translate.Overlay(&m.Overlays[i])
		s.Overlays = append(slices.DeleteFunc(s.Overlays,
			func(have cluster.Overlay) bool { return have.Name == o.Name }), o)
	}
	slices.SortFunc(s.Pools, func(a, b cluster.Pool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Overlays, func(a, b cluster.Overlay) int { return strings.Compare(a.Name, b.Name) })
	return s
}
