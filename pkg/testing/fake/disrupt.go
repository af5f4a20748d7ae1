package fake

import (
	"context"
	"slices"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/testing/objects"
)

// TaintNode keeps new pods off the node.
func (p *Ports) TaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "taint node", n, func(have *cluster.Node) {
		if t := objects.DisruptedTaint(); !slices.Contains(have.Taints, t) {
			have.Taints = append(slices.Clone(have.Taints), t)
		}
	})
}

// UntaintNode lets pods on it again.
func (p *Ports) UntaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "untaint node", n, func(have *cluster.Node) {
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints),
			func(t cluster.Taint) bool { return t == objects.DisruptedTaint() })
	})
}

// ReadMemory returns what was remembered last.
func (p *Ports) ReadMemory(ctx context.Context) (disruption.Memory, error) {
	return do(ctx, p, "recall", func() (disruption.Memory, error) { return p.w.memory, nil })
}

// WriteMemory stores it.
func (p *Ports) WriteMemory(ctx context.Context, m disruption.Memory) error {
	return try(ctx, p, "remember", func() error {
		p.w.memory = m
		return nil
	})
}

// Scale leaves so many pods of the app and ends the others; it makes none.
func (w *World) Scale(app string, n int) {
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

// Price is what the instances that run cost, USD per hour.
func (w *World) Price() (usd float64) {
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
