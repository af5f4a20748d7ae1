package controllers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// buffered is a cluster in which a CapacityBuffer keeps room for pods.
type buffered struct {
	*fake.Ports
	buffer buffers.Buffer
	writes int
}

func newBuffered(w *fake.World, pods int32, need cluster.Pod) *buffered {
	o := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "room", UID: "u"}}
	o.Spec.PodTemplateRef, o.Spec.Replicas = &v1beta1.LocalObjectRef{Name: "t"}, &pods
	return &buffered{Ports: w.Ports(fake.Fault{}), buffer: buffers.Buffer{Object: o, Template: &need}}
}

func (b *buffered) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	out, err := b.Ports.PendingPods(ctx)
	return append(out, buffers.VirtualPods([]buffers.Buffer{b.buffer})...), err
}

func (b *buffered) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := b.Ports.ReadSnapshot(ctx)
	s.Pods = append(s.Pods, buffers.VirtualPods([]buffers.Buffer{b.buffer})...)
	return s, err
}

func (b *buffered) ListBuffers(context.Context) ([]buffers.Buffer, error) {
	return []buffers.Buffer{b.buffer}, nil
}

func (b *buffered) WriteBufferStatus(context.Context, *v1beta1.CapacityBuffer) error {
	b.writes++
	return nil
}

// state is the status of the condition Provisioning and its reason.
func (b *buffered) state() string {
	for _, c := range b.buffer.Object.Status.Conditions {
		if c.Type == v1beta1.ConditionProvisioning {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func (b *buffered) provision(w *fake.World) *provision.Controller {
	f := controllertest.Functions{World: w}
	c := f.Provision(b.Ports)
	c.Read, c.Buffers = b, b
	return c
}

// Room is made for a buffer although no pod waits, and then kept without waiting for anything.
func TestBufferGetsRoom(t *testing.T) {
	w := controllertest.NewWorld()
	b := newBuffered(w, 3, controllertest.PodOf(900, 1000))
	if err := b.provision(w).Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if got := b.state(); len(w.Claims()) == 0 || got != "False RequiresNewCapacity" {
		t.Fatalf("%d claims, Provisioning is %s", len(w.Claims()), got)
	}
	made := len(w.Claims())
	w.Advance(time.Minute)
	start := w.Now()
	if err := b.provision(w).Run(t.Context(), w.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := b.state(); got != "True FitsExistingCapacity" || len(w.Claims()) != made || !w.Now().Equal(start) {
		t.Errorf("Provisioning is %s, %d claims instead of %d, waited %s", got, len(w.Claims()), made, w.Now().Sub(start))
	}
	writes := b.writes
	if err := b.provision(w).Run(t.Context(), w.Now()); err != nil || b.writes != writes {
		t.Errorf("%d writes of an unchanged status, error %v", b.writes-writes, err)
	}
}

// Nobody is told about a pod that does not exist.
func TestBufferWithoutRoomGetsNoEvents(t *testing.T) {
	w := controllertest.NewWorld()
	b := newBuffered(w, 1, controllertest.PodOf(500_000, 1000))
	if err := b.provision(w).Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if got := b.state(); len(w.Events("Pod")) != 0 || got != "False RequiresNewCapacity" {
		t.Errorf("events %q, Provisioning is %s", w.Events("Pod"), got)
	}
}

// Refresh says what buffers come to, and leaves what provision said about room.
func TestRefreshTellsBuffers(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	empty, three := int32(0), int32(3)
	for name, n := range map[string]*int32{"empty": &empty, "three": &three} {
		o := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		o.Spec.PodTemplateRef, o.Spec.Replicas = &v1beta1.LocalObjectRef{Name: "t"}, n
		s.Buffers = append(s.Buffers, buffers.Buffer{Object: o, Template: &cluster.Pod{}})
	}
	if _, err := s.Run(t); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, b := range s.Buffers {
		got[b.Object.Name] = len(b.Object.Status.Conditions)
	}
	if d := cmp.Diff(map[string]int{"empty": 2, "three": 1}, got); d != "" {
		t.Errorf("conditions (-want +got):\n%s", d)
	}
	did, err := s.Run(t)
	if err != nil || slices.ContainsFunc(did, func(d string) bool { return d == "status of buffer empty" || d == "status of buffer three" }) {
		t.Errorf("again: %v, error %v", did, err)
	}
}

// Whoever may write CapacityBuffers makes Joiner launch, past quotas of pods, and never past the limits of NodePools: a
// buffer for 5,000 pods gets the nodes that the limit has room for, and no more in later passes.
func TestBuffersAreBoundedByTheLimitsOfNodePools(t *testing.T) {
	const limit = 40_000 // millicores
	w := controllertest.NewWorld()
	w.Quota = 1000
	w.ChangePool(func(p *cluster.Pool) {
		p.Limits, p.Limited = resources.List{CPU: limit}, []string{resources.CPU}
	})
	b := newBuffered(w, 5000, controllertest.PodOf(900, 1000))
	for range 4 {
		if err := b.provision(w).Run(t.Context(), w.Now()); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Minute)
	}
	made := int64(0)
	for _, c := range w.Claims() {
		made += c.Capacity.CPU
	}
	if made == 0 || made > limit {
		t.Errorf("nodes of %d millicores for a buffer, the NodePool is limited to %d", made, limit)
	}
	if got := b.state(); got != "False RequiresNewCapacity" {
		t.Errorf("Provisioning is %s", got)
	}
}
