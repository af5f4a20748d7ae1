package fake

import (
	"context"
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/objects"
)

// PodsOn lists the pods of a node.
func (p PodPorts) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	return doCall(ctx, p.invocation, "list pods of node", func() ([]cluster.Pod, error) {
		return slices.DeleteFunc(p.w.listPods(), func(pod cluster.Pod) bool { return pod.NodeName != node }), nil
	})
}

// RemovePod removes the pod at once; its app makes another.
func (p PodPorts) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return tryCall(ctx, p.invocation, "remove pod", func() error {
		if have, ok := p.w.pods[pod.Name]; ok && have.UID == pod.UID {
			p.w.removePod(have)
		}
		return nil
	})
}

// PoolAnnotations returns what AnnotatePool wrote.
func (p PoolPorts) PoolAnnotations(ctx context.Context, _ string) (map[string]string, error) {
	return doCall(ctx, p.invocation, "get pool",
		func() (map[string]string, error) { return maps.Clone(p.w.poolNotes), nil })
}

// AnnotatePool writes onto the one pool itself.
func (w *poolStore) AnnotatePool(key, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.poolNotes = objects.Merge(w.poolNotes, map[string]string{key: value})
}

// TakeOne lets Quota things through.
func (p SharedPorts) TakeOne(ctx context.Context, thing string) (bool, error) {
	return doCall(ctx, p.invocation, "take of quota", func() (bool, error) {
		if slices.Contains(p.w.taken, thing) {
			return true, nil
		}
		if len(p.w.taken) >= p.w.Quota {
			return false, nil
		}
		p.w.taken = append(p.w.taken, thing)
		return true, nil
	})
}

// StopInstance ends an instance as a person does who stops it in the console, or goes on with that.
func (w *ec2) StopInstance(id, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[id].State = state
	for _, n := range w.nodeStore.nodes {
		n.Ready = n.Ready && n.ProviderID != w.instances[id].ProviderID()
	}
}

// ReuseNode gives the node of that name to another instance, as when an address is used again.
func (w *nodeStore) ReuseNode(name, providerID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[name].ProviderID = providerID
}
