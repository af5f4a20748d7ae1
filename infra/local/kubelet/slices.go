package kubelet

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slice is what a DRA driver publishes of a node's devices.
type Slice struct {
	After time.Duration // counted from when the node's agents are done
	// Spec is without the node, and its pool without a name: both get the node's.
	Spec resourcev1.ResourceSliceSpec
}

// publishSlices publishes them, each in its time. They end with the Node, as those do that a kubelet plugin publishes.
func (b *Bridge) publishSlices(ctx context.Context, i Instance, all []Slice) error {
	began := time.Now()
	byTime := slices.SortedStableFunc(slices.Values(all), func(x, y Slice) int { return int(x.After - y.After) })
	for number, one := range byTime {
		if !waitFor(ctx, one.After-time.Since(began)) {
			return ctx.Err()
		}
		if err := b.publishSlice(ctx, i, number, one.Spec); err != nil {
			return fmt.Errorf("publish devices of %s: %w", one.Spec.Driver, err)
		}
		b.logLine(i, fmt.Sprintf("driver %s publishes %d devices", one.Spec.Driver, len(one.Spec.Devices)))
	}
	return nil
}

func (b *Bridge) publishSlice(ctx context.Context, i Instance, number int, spec resourcev1.ResourceSliceSpec) error {
	return retryRequest(ctx, func(ctx context.Context) error {
		n, err := b.getNode(ctx, i)
		if err != nil {
			return err
		}
		spec.NodeName, spec.Pool.Name = &n.Name, n.Name
		slice := &resourcev1.ResourceSlice{Spec: spec, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", n.Name, number), OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: new(true)}}}}
		_, err = b.admin.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the answer to the request before was lost
		}
		return err
	})
}
