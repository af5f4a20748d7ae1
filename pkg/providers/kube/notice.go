package kube

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclass/translate"
)

// mostNamed bounds the instances that one question names; about more all claims are read.
const mostNamed = 100

// fewUnnamed is how many claims without the label of their instance are read at a time where one may be enough: in a
// burst of launches there are hundreds.
const fewUnnamed = 10

// ClaimsOf lists the NodeClaims that have one of the instances by their label and, if not all of the instances are
// found so, those without that label, sorted by name. Where one is enough, if enough is not nil, it need not list
// others. The API server answers from memory, and sends next to nothing however many claims there are.
func (c *Client) ClaimsOf(ctx context.Context, instances []string, enough func(cluster.Claim) bool) ([]cluster.Claim,
	error) {
	if len(instances) > mostNamed {
		return c.ListClaims(ctx)
	}
	named := karpv1.LabelInstance + " in (" + strings.Join(instances, ",") + ")"
	out, err := c.listClaims(ctx, listQuery{labels: named}, nil)
	if err != nil || foundAll(instances, out) {
		return out, err
	}
	// Then in this order: a claim that gets its label between the questions is found twice, and not never.
	out = nil
	unnamed := listQuery{labels: "!" + karpv1.LabelInstance}
	if enough != nil {
		unnamed.page = fewUnnamed
	}
	for _, q := range []listQuery{unnamed, {labels: named}} {
		found, err := c.listClaims(ctx, q, enough)
		if err != nil {
			return nil, err
		}
		out = append(found, out...) // the newer first
	}
	slices.SortStableFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b cluster.Claim) bool { return a.UID == b.UID }), nil
}

func foundAll(instances []string, claims []cluster.Claim) bool {
	return !slices.ContainsFunc(instances, func(id string) bool {
		return !slices.ContainsFunc(claims, func(c cluster.Claim) bool { return c.Labels[karpv1.LabelInstance] == id })
	})
}

// PodsOn lists the pods of a node, those that have ended too, sorted. The API server finds them by index.
func (c *Client) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	out, _, err := listAll(ctx, c, listQuery{place: podPath(), fields: "spec.nodeName=" + node}, newPods,
		func(l *corev1.PodList) []cluster.Pod { return translatePage(l.Items, translate.Pod) })
	return out, err
}

// RemovePod removes this very pod at once, without asking its kubelet: only right where its processes have ended. A pod
// that is gone is no error.
func (c *Client) RemovePod(ctx context.Context, p cluster.Pod) error {
	none := int64(0)
	return c.deleteObject(ctx, apiCall{verb: "remove", place: podPath(), namespace: p.Namespace, name: p.Name}, p.UID,
		&none)
}

// PoolAnnotations are the annotations of a NodePool, none when it is gone.
func (c *Client) PoolAnnotations(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil // a claim that somebody made by hand
	}
	p := &karpv1.NodePool{}
	err := c.getObject(ctx, apiCall{verb: "get", place: poolPath(), name: name}, p)
	if isNotFound(err) {
		return nil, nil
	}
	return p.Annotations, err
}
