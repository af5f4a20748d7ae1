package kube

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// Buffers reads and writes CapacityBuffers.
type Buffers struct{ *connection }

// ListBuffers lists the CapacityBuffers of the strategy that Joiner follows, sorted, each with the template or workload
// that it names and its share of the pods that buffers may stand for; one whose workload is not there, or may not be
// read, stands for none. A cluster that does not know the kind has none.
func (b Buffers) ListBuffers(ctx context.Context) ([]buffers.Buffer, error) {
	stored, _, err := listAll(ctx, b.connection, listQuery{place: capacityBuffers()},
		func(l *v1beta1.CapacityBufferList) []v1beta1.CapacityBuffer {
			mine := slices.DeleteFunc(l.Items, func(buffer v1beta1.CapacityBuffer) bool { return !buffer.Mine() })
			return translatePage(mine, translate.SlimBuffer)
		})
	if err != nil {
		if isNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	slices.SortFunc(stored, func(a, buffer v1beta1.CapacityBuffer) int {
		return cmp.Or(cmp.Compare(a.Namespace, buffer.Namespace), cmp.Compare(a.Name, buffer.Name))
	})
	out := make([]buffers.Buffer, len(stored))
	for i := range stored {
		out[i].Object = &stored[i]
	}
	read := buffers.ShareReads(out)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(buffersAtOnce)
	for i := range out {
		if !read[i] {
			continue
		}
		g.Go(func() error {
			// one workload that Joiner may not read must not hide all others
			if err := b.resolveBuffer(gctx, &out[i]); err != nil && !isNotFound(err) && !apierrors.IsForbidden(err) {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	buffers.ShareOut(out)
	return out, nil
}

// buffersAtOnce is of how many buffers what they name is read at once.
const buffersAtOnce = 8

// bufferRoom is the room that buffers ask for.
type bufferRoom struct {
	pods    []cluster.Pod           // of active capacity
	stopped []cluster.StoppedBuffer // of stopped capacity
}

// listRoom lists what buffers keep room for.
func (b Buffers) listRoom(ctx context.Context) (bufferRoom, error) {
	all, err := b.ListBuffers(ctx)
	return bufferRoom{buffers.VirtualPods(all), buffers.Stopped(all)}, err
}

// listVirtualPods lists the pods that buffers keep room for, in whatever way.
func (b Buffers) listVirtualPods(ctx context.Context) ([]cluster.Pod, error) {
	room, err := b.listRoom(ctx)
	for _, buffer := range room.stopped {
		room.pods = append(room.pods, buffer.Pods...)
	}
	return room.pods, err
}

// resolveBuffer reads what the buffer names. The error is a *NotFoundError if there is none.
func (b Buffers) resolveBuffer(ctx context.Context, buffer *buffers.Buffer) error {
	ns := buffer.Object.Namespace
	if ref := buffer.Object.Spec.PodTemplateRef; ref != nil {
		t := &corev1.PodTemplate{}
		if err := b.getObject(ctx, apiCall{verb: "get", place: podTemplates(), namespace: ns, name: ref.Name},
			t); err != nil {
			return err
		}
		buffer.Template, buffer.Generation = translate.Template(ns, t.Template), t.Generation
		return nil
	}
	ref := buffer.Object.Spec.ScalableRef
	if ref == nil || !buffers.IsScalable(ref) {
		return nil
	}
	read := func(place apiPath, into runtime.Object) error {
		return b.getObject(ctx, apiCall{verb: "get", place: place, namespace: ns, name: ref.Name}, into)
	}
	scaled := func(err error, m metav1.ObjectMeta, replicas *int32, t corev1.PodTemplateSpec) error {
		buffer.Template, buffer.Generation, buffer.Scale = translate.Template(ns, t), m.Generation, 1
		if replicas != nil {
			buffer.Scale = *replicas
		}
		return err
	}
	switch ref.Kind {
	case "Deployment":
		o := &appsv1.Deployment{}
		err := read(deploymentPath(), o)
		return scaled(err, o.ObjectMeta, o.Spec.Replicas, o.Spec.Template)
	case "StatefulSet":
		o := &appsv1.StatefulSet{}
		err := read(statefulSets(), o)
		return scaled(err, o.ObjectMeta, o.Spec.Replicas, o.Spec.Template)
	case "ReplicaSet":
		o := &appsv1.ReplicaSet{}
		err := read(replicaSets(), o)
		return scaled(err, o.ObjectMeta, o.Spec.Replicas, o.Spec.Template)
	}
	return nil
}

// WriteBufferStatus stores the status of the buffer, on the condition that the buffer was not changed since it was
// read. On success the buffer given is as stored.
func (b Buffers) WriteBufferStatus(ctx context.Context, buffer *v1beta1.CapacityBuffer) error {
	kind := v1beta1.GroupVersion().WithKind(v1beta1.CapacityBufferKind)
	return writeStatus(ctx, b.connection, capacityBuffers(), kind, buffer)
}
