package fake

import (
	"context"
	"slices"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/objects"
)

// TaintNode keeps new pods off the node.
func (p NodePorts) TaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "taint node", n, func(have *cluster.Node) {
		if t := objects.DisruptedTaint(); !slices.Contains(have.Taints, t) {
			have.Taints = append(slices.Clone(have.Taints), t)
		}
	})
}

// UntaintNode lets pods on it again.
func (p NodePorts) UntaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "untaint node", n, func(have *cluster.Node) {
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints),
			func(t cluster.Taint) bool { return t == objects.DisruptedTaint() })
	})
}

// TaintRevision keeps new pods off a node because of a NodeRollout.
func (p NodePorts) TaintRevision(ctx context.Context, n cluster.Node, key string) error {
	return p.changeNode(ctx, "taint node of revision", n, func(have *cluster.Node) {
		if t := objects.RevisionTaint(key); !slices.Contains(have.Taints, t) {
			have.Taints = append(slices.Clone(have.Taints), t)
		}
	})
}

// UntaintRevision takes that back.
func (p NodePorts) UntaintRevision(ctx context.Context, n cluster.Node, key string) error {
	return p.changeNode(ctx, "untaint node of revision", n, func(have *cluster.Node) {
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints), func(t cluster.Taint) bool { return t.Key == key })
	})
}

// ReadMemory returns what was remembered last.
func (p SharedPorts) ReadMemory(ctx context.Context) (disruption.Memory, error) {
	return doCall(ctx, p.invocation, "recall", func() (disruption.Memory, error) { return p.w.memory, nil })
}

// WriteMemory stores it.
func (p SharedPorts) WriteMemory(ctx context.Context, m disruption.Memory) error {
	return tryCall(ctx, p.invocation, "remember", func() error {
		p.w.memory = m
		return nil
	})
}

// ScaleApp leaves so many pods of the app and ends the others; it makes none.
func (w *podStore) ScaleApp(app string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []string
	for key, pod := range w.pods {
		if pod.Labels["app"] == app {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[min(n, len(keys)):] {
		delete(w.pods, key)
	}
}

// FleetPrice returns the price of the instances that run, in USD per hour.
func (w *ec2) FleetPrice() (usd float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.instances {
		if m.Gone() {
			continue
		}
		for _, o := range w.types[m.Type].Offerings {
			if o.Zone == m.Zone && o.CapacityType == m.CapacityType {
				usd += o.Price
			}
		}
	}
	return usd
}
