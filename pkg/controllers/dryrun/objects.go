package dryrun

import (
	"context"
	"fmt"

	v1beta1 "joiner/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/controllers"
	"joiner/pkg/disruption"
	"joiner/pkg/model/buffers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/resources"
)

// Nodes writes no Node while the gate is closed.
func (g *Gate) Nodes(to controllers.Nodes) controllers.Nodes { return dryRunNodes{g, to} }

type dryRunNodes struct {
	g  *Gate
	to controllers.Nodes
}

func (p dryRunNodes) RegisterNode(ctx context.Context, n cluster.Node, c cluster.Claim) error {
	return p.g.unlessClosedNoAnswer(ctx, "register node "+n.Name, func() error { return p.to.RegisterNode(ctx, n, c) })
}

func (p dryRunNodes) InitializeNode(ctx context.Context, n cluster.Node) error {
	return p.g.unlessClosedNoAnswer(ctx, "label node "+n.Name+" as initialized", func() error { return p.to.InitializeNode(ctx, n) })
}

func (p dryRunNodes) UnreserveNode(ctx context.Context, n cluster.Node) error {
	return p.g.unlessClosedNoAnswer(ctx, "label node "+n.Name+" as on-demand", func() error { return p.to.UnreserveNode(ctx, n) })
}

func (p dryRunNodes) TaintForTermination(ctx context.Context, n cluster.Node) error {
	return p.g.unlessClosedNoAnswer(ctx, "taint node "+n.Name+" for its removal", func() error { return p.to.TaintForTermination(ctx, n) })
}

func (p dryRunNodes) DeleteNode(ctx context.Context, n cluster.Node) error {
	return p.g.unlessClosedNoAnswer(ctx, "delete node "+n.Name, func() error { return p.to.DeleteNode(ctx, n) })
}

func (p dryRunNodes) ReleaseNode(ctx context.Context, n cluster.Node) error {
	return p.g.unlessClosedNoAnswer(ctx, "take the finalizer off node "+n.Name, func() error { return p.to.ReleaseNode(ctx, n) })
}

// Pods removes no pod while the gate is closed; an eviction is answered as for a pod that is gone.
func (g *Gate) Pods(to controllers.Pods) controllers.Pods { return dryRunPods{g, to} }

type dryRunPods struct {
	g  *Gate
	to controllers.Pods
}

func (p dryRunPods) EvictPod(ctx context.Context, pod cluster.Pod) (cluster.Eviction, error) {
	return unlessClosed(ctx, p.g, "evict pod "+pod.Key(), cluster.Eviction{Outcome: cluster.Gone}, func() (cluster.Eviction, error) { return p.to.EvictPod(ctx, pod) })
}

func (p dryRunPods) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return p.g.unlessClosedNoAnswer(ctx, "delete pod "+pod.Key(), func() error { return p.to.DeletePod(ctx, pod, graceSec) })
}

// NodePods removes no pod while the gate is closed.
func (g *Gate) NodePods(to controllers.NodePods) controllers.NodePods { return dryRunNodePods{g, to} }

type dryRunNodePods struct {
	g  *Gate
	to controllers.NodePods
}

func (p dryRunNodePods) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	return p.to.PodsOn(ctx, node)
}

func (p dryRunNodePods) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return p.g.unlessClosedNoAnswer(ctx, "delete pod "+pod.Key(), func() error { return p.to.DeletePod(ctx, pod, graceSec) })
}

func (p dryRunNodePods) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return p.g.unlessClosedNoAnswer(ctx, "remove pod "+pod.Key(), func() error { return p.to.RemovePod(ctx, pod) })
}

// Quota takes nothing from the quota while the gate is closed; the thing may be done then, as far as the quota goes.
func (g *Gate) Quota(to controllers.RateQuota) controllers.RateQuota { return dryRunQuota{g, to} }

type dryRunQuota struct {
	g  *Gate
	to controllers.RateQuota
}

func (q dryRunQuota) TakeOne(ctx context.Context, thing string) (bool, error) {
	return unlessClosed(ctx, q.g, "count "+thing+" against its quota", true, func() (bool, error) { return q.to.TakeOne(ctx, thing) })
}

// Tolerator changes no pod while the gate is closed.
func (g *Gate) Tolerator(to controllers.Tolerator) controllers.Tolerator {
	return dryRunTolerator{g, to}
}

type dryRunTolerator struct {
	g  *Gate
	to controllers.Tolerator
}

func (p dryRunTolerator) TolerateNomination(ctx context.Context, pod cluster.Pod, t cluster.Taint) error {
	return p.g.unlessClosedNoAnswer(ctx, "let pod "+pod.Key()+" onto a held node", func() error { return p.to.TolerateNomination(ctx, pod, t) })
}

// Opener takes no hold off while the gate is closed.
func (g *Gate) Opener(to controllers.NominationOpener) controllers.NominationOpener {
	return dryRunOpener{g, to}
}

type dryRunOpener struct {
	g  *Gate
	to controllers.NominationOpener
}

func (p dryRunOpener) OpenNode(ctx context.Context, n cluster.Node) error {
	return p.g.unlessClosedNoAnswer(ctx, "take the hold off node "+n.Name, func() error { return p.to.OpenNode(ctx, n) })
}

// Recorder writes no Kubernetes event while the gate is closed.
func (g *Gate) Recorder(to controllers.Recorder) controllers.Recorder { return dryRunRecorder{g, to} }

type dryRunRecorder struct {
	g  *Gate
	to controllers.Recorder
}

func (r dryRunRecorder) RecordEvent(ctx context.Context, e cluster.Event) error {
	return r.g.unlessClosedNoAnswer(ctx, "write event "+e.Reason+" on "+e.Kind+" "+e.Name+": "+e.Message, func() error { return r.to.RecordEvent(ctx, e) })
}

// Buffers writes no status while the gate is closed.
func (g *Gate) Buffers(to controllers.Buffers) controllers.Buffers { return dryRunBuffers{g, to} }

type dryRunBuffers struct {
	g  *Gate
	to controllers.Buffers
}

func (b dryRunBuffers) ListBuffers(ctx context.Context) ([]buffers.Buffer, error) {
	return b.to.ListBuffers(ctx)
}

func (b dryRunBuffers) WriteBufferStatus(ctx context.Context, o *v1beta1.CapacityBuffer) error {
	return b.g.unlessClosedNoAnswer(ctx, "write the status of CapacityBuffer "+o.Name, func() error { return b.to.WriteBufferStatus(ctx, o) })
}

// Overlays writes no status while the gate is closed.
func (g *Gate) Overlays(to controllers.Overlays) controllers.Overlays { return dryRunOverlays{g, to} }

type dryRunOverlays struct {
	g  *Gate
	to controllers.Overlays
}

func (p dryRunOverlays) ReadOfferingInputs(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	return p.to.ReadOfferingInputs(ctx)
}

func (p dryRunOverlays) WriteOverlayStatus(ctx context.Context, o *v1alpha1.NodeOverlay) error {
	return p.g.unlessClosedNoAnswer(ctx, "write the status of NodeOverlay "+o.Name, func() error { return p.to.WriteOverlayStatus(ctx, o) })
}

// Classes writes no EC2NodeClass while the gate is closed.
func (g *Gate) Classes(to controllers.Classes) controllers.Classes { return dryRunClasses{g, to} }

type dryRunClasses struct {
	g  *Gate
	to controllers.Classes
}

func (p dryRunClasses) ListClasses(ctx context.Context) ([]awsv1.EC2NodeClass, error) {
	return p.to.ListClasses(ctx)
}

func (p dryRunClasses) ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	return p.to.ReadClass(ctx, name)
}

func (p dryRunClasses) WriteClassStatus(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return p.g.unlessClosedNoAnswer(ctx, "write the status of EC2NodeClass "+c.Name, func() error { return p.to.WriteClassStatus(ctx, c) })
}

func (p dryRunClasses) MarkClass(ctx context.Context, name string, annotations map[string]string) error {
	return p.g.unlessClosedNoAnswer(ctx, "annotate EC2NodeClass "+name, func() error { return p.to.MarkClass(ctx, name, annotations) })
}

func (p dryRunClasses) ReleaseClass(ctx context.Context, name string) error {
	return p.g.unlessClosedNoAnswer(ctx, "take the finalizer off EC2NodeClass "+name, func() error { return p.to.ReleaseClass(ctx, name) })
}

// Pools writes no NodePool while the gate is closed.
func (g *Gate) Pools(to controllers.Pools) controllers.Pools { return dryRunPools{g, to} }

type dryRunPools struct {
	g  *Gate
	to controllers.Pools
}

func (p dryRunPools) ListPools(ctx context.Context) ([]v1.NodePool, error) {
	return p.to.ListPools(ctx)
}

func (p dryRunPools) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	return p.to.ListClaims(ctx)
}

func (p dryRunPools) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return unlessClosed(ctx, p.g, "annotate NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.AnnotateClaim(ctx, c, set) })
}

func (p dryRunPools) WritePoolStatus(ctx context.Context, o *v1.NodePool) error {
	return p.g.unlessClosedNoAnswer(ctx, "write the status of NodePool "+o.Name, func() error { return p.to.WritePoolStatus(ctx, o) })
}

func (p dryRunPools) PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error {
	return p.g.unlessClosedNoAnswer(ctx, "annotate NodePool "+name, func() error { return p.to.PatchPoolMeta(ctx, name, annotations) })
}

// PoolStatus writes nothing about NodePools while the gate is closed.
func (g *Gate) PoolStatus(to controllers.PoolStatus) controllers.PoolStatus {
	return dryRunPoolStatus{g, to}
}

type dryRunPoolStatus struct {
	g  *Gate
	to controllers.PoolStatus
}

func (p dryRunPoolStatus) CountPool(ctx context.Context, pool string, has resources.List) error {
	return p.g.unlessClosedNoAnswer(ctx, "count the nodes of NodePool "+pool, func() error { return p.to.CountPool(ctx, pool, has) })
}

func (p dryRunPoolStatus) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	return p.g.unlessClosedNoAnswer(ctx, "note registrations on NodePool "+pool, func() error { return p.to.RecordRegistrations(ctx, pool, outcomes) })
}

// Moves taints no node while the gate is closed.
func (g *Gate) Moves(to controllers.NodeTainter) controllers.NodeTainter { return dryRunTainter{g, to} }

type dryRunTainter struct {
	g  *Gate
	to controllers.NodeTainter
}

func (m dryRunTainter) TaintNode(ctx context.Context, n cluster.Node) error {
	return m.g.unlessClosedNoAnswer(ctx, "taint node "+n.Name, func() error { return m.to.TaintNode(ctx, n) })
}

func (m dryRunTainter) UntaintNode(ctx context.Context, n cluster.Node) error {
	return m.g.unlessClosedNoAnswer(ctx, "untaint node "+n.Name, func() error { return m.to.UntaintNode(ctx, n) })
}

// Notes still recalls while the gate is closed, and remembers nothing.
func (g *Gate) Notes(to controllers.DisruptionMemory) controllers.DisruptionMemory {
	return dryRunMemory{g, to}
}

type dryRunMemory struct {
	g  *Gate
	to controllers.DisruptionMemory
}

func (n dryRunMemory) ReadMemory(ctx context.Context) (disruption.Memory, error) {
	return n.to.ReadMemory(ctx)
}

func (n dryRunMemory) WriteMemory(ctx context.Context, m disruption.Memory) error {
	return n.g.unlessClosedNoAnswer(ctx, fmt.Sprintf("remember %d proposed disruptions", len(m.Proposals)), func() error { return n.to.WriteMemory(ctx, m) })
}
