package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// PodsOn lists the pods of a node, those that have ended too, sorted. The API server finds them by index.
func (c *Client) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	out, _, err := list(ctx, c, query{place: pods(), fields: "spec.nodeName=" + node}, newPods,
		func(l *corev1.PodList) []cluster.Pod { return translated(l.Items, podFrom) })
	return out, err
}

// RemovePod removes this very pod at once, without asking its kubelet: only right where its processes have ended. A pod that is
// gone is no error.
func (c *Client) RemovePod(ctx context.Context, p cluster.Pod) error {
	none := int64(0)
	return c.remove(ctx, call{verb: "remove", place: pods(), namespace: p.Namespace, name: p.Name}, p.UID, &none)
}

// PoolAnnotations are the annotations of a NodePool, none when it is gone.
func (c *Client) PoolAnnotations(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil // a claim that somebody made by hand
	}
	p := &karpv1.NodePool{}
	err := c.get(ctx, call{verb: "get", place: pools(), name: name}, p)
	if isNotFound(err) {
		return nil, nil
	}
	return p.Annotations, err
}
