package gate

import (
	"context"
	"fmt"

	v1beta1 "joiner/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/buffer"
	"joiner/pkg/cluster"
	"joiner/pkg/control"
	"joiner/pkg/disrupt"
	"joiner/pkg/resource"
)

// Nodes writes no Node while the gate is closed.
func (g *Gate) Nodes(to control.Nodes) control.Nodes { return nodes{g, to} }

type nodes struct {
	g  *Gate
	to control.Nodes
}

func (p nodes) RegisterNode(ctx context.Context, n cluster.Node, c cluster.Claim) error {
	return p.g.pass(ctx, "register node "+n.Name, func() error { return p.to.RegisterNode(ctx, n, c) })
}

func (p nodes) InitializeNode(ctx context.Context, n cluster.Node) error {
	return p.g.pass(ctx, "label node "+n.Name+" as initialized", func() error { return p.to.InitializeNode(ctx, n) })
}

func (p nodes) UnreserveNode(ctx context.Context, n cluster.Node) error {
	return p.g.pass(ctx, "label node "+n.Name+" as on-demand", func() error { return p.to.UnreserveNode(ctx, n) })
}

func (p nodes) CondemnNode(ctx context.Context, n cluster.Node) error {
	return p.g.pass(ctx, "taint node "+n.Name+" for its removal", func() error { return p.to.CondemnNode(ctx, n) })
}

func (p nodes) DeleteNode(ctx context.Context, n cluster.Node) error {
	return p.g.pass(ctx, "delete node "+n.Name, func() error { return p.to.DeleteNode(ctx, n) })
}

func (p nodes) ReleaseNode(ctx context.Context, n cluster.Node) error {
	return p.g.pass(ctx, "take the finalizer off node "+n.Name, func() error { return p.to.ReleaseNode(ctx, n) })
}

// Pods removes no pod while the gate is closed; an eviction is answered as for a pod that is gone.
func (g *Gate) Pods(to control.Pods) control.Pods { return pods{g, to} }

type pods struct {
	g  *Gate
	to control.Pods
}

func (p pods) Evict(ctx context.Context, pod cluster.Pod) (cluster.Eviction, error) {
	return through(ctx, p.g, "evict pod "+pod.Key(), cluster.Eviction{Outcome: cluster.Gone}, func() (cluster.Eviction, error) { return p.to.Evict(ctx, pod) })
}

func (p pods) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return p.g.pass(ctx, "delete pod "+pod.Key(), func() error { return p.to.DeletePod(ctx, pod, graceSec) })
}

// NodePods removes no pod while the gate is closed.
func (g *Gate) NodePods(to control.NodePods) control.NodePods { return nodePods{g, to} }

type nodePods struct {
	g  *Gate
	to control.NodePods
}

func (p nodePods) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	return p.to.PodsOn(ctx, node)
}

func (p nodePods) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return p.g.pass(ctx, "delete pod "+pod.Key(), func() error { return p.to.DeletePod(ctx, pod, graceSec) })
}

func (p nodePods) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return p.g.pass(ctx, "remove pod "+pod.Key(), func() error { return p.to.RemovePod(ctx, pod) })
}

// Quota takes nothing from the quota while the gate is closed; the thing may be done then, as far as the quota goes.
func (g *Gate) Quota(to control.Quota) control.Quota { return quota{g, to} }

type quota struct {
	g  *Gate
	to control.Quota
}

func (q quota) Take(ctx context.Context, thing string) (bool, error) {
	return through(ctx, q.g, "count "+thing+" against its quota", true, func() (bool, error) { return q.to.Take(ctx, thing) })
}

// Tolerator changes no pod while the gate is closed.
func (g *Gate) Tolerator(to control.Tolerator) control.Tolerator { return tolerator{g, to} }

type tolerator struct {
	g  *Gate
	to control.Tolerator
}

func (p tolerator) Tolerate(ctx context.Context, pod cluster.Pod, t cluster.Taint) error {
	return p.g.pass(ctx, "let pod "+pod.Key()+" onto a held node", func() error { return p.to.Tolerate(ctx, pod, t) })
}

// Opener takes no hold off while the gate is closed.
func (g *Gate) Opener(to control.Opener) control.Opener { return opener{g, to} }

type opener struct {
	g  *Gate
	to control.Opener
}

func (p opener) OpenNode(ctx context.Context, n cluster.Node) error {
	return p.g.pass(ctx, "take the hold off node "+n.Name, func() error { return p.to.OpenNode(ctx, n) })
}

// Recorder writes no Kubernetes event while the gate is closed.
func (g *Gate) Recorder(to control.Recorder) control.Recorder { return recorder{g, to} }

type recorder struct {
	g  *Gate
	to control.Recorder
}

func (r recorder) Event(ctx context.Context, e cluster.Event) error {
	return r.g.pass(ctx, "write event "+e.Reason+" on "+e.Kind+" "+e.Name+": "+e.Message, func() error { return r.to.Event(ctx, e) })
}

// Buffers writes no status while the gate is closed.
func (g *Gate) Buffers(to control.Buffers) control.Buffers { return buffers{g, to} }

type buffers struct {
	g  *Gate
	to control.Buffers
}

func (b buffers) Buffers(ctx context.Context) ([]buffer.Buffer, error) { return b.to.Buffers(ctx) }

func (b buffers) WriteBufferStatus(ctx context.Context, o *v1beta1.CapacityBuffer) error {
	return b.g.pass(ctx, "write the status of CapacityBuffer "+o.Name, func() error { return b.to.WriteBufferStatus(ctx, o) })
}

// Overlays writes no status while the gate is closed.
func (g *Gate) Overlays(to control.Overlays) control.Overlays { return overlays{g, to} }

type overlays struct {
	g  *Gate
	to control.Overlays
}

func (p overlays) Shelves(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	return p.to.Shelves(ctx)
}

func (p overlays) WriteOverlayStatus(ctx context.Context, o *v1alpha1.NodeOverlay) error {
	return p.g.pass(ctx, "write the status of NodeOverlay "+o.Name, func() error { return p.to.WriteOverlayStatus(ctx, o) })
}

// Classes writes no EC2NodeClass while the gate is closed.
func (g *Gate) Classes(to control.Classes) control.Classes { return classes{g, to} }

type classes struct {
	g  *Gate
	to control.Classes
}

func (p classes) Classes(ctx context.Context) ([]awsv1.EC2NodeClass, error) { return p.to.Classes(ctx) }

func (p classes) Class(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	return p.to.Class(ctx, name)
}

func (p classes) WriteClassStatus(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return p.g.pass(ctx, "write the status of EC2NodeClass "+c.Name, func() error { return p.to.WriteClassStatus(ctx, c) })
}

func (p classes) MarkClass(ctx context.Context, name string, annotations map[string]string) error {
	return p.g.pass(ctx, "annotate EC2NodeClass "+name, func() error { return p.to.MarkClass(ctx, name, annotations) })
}

func (p classes) ReleaseClass(ctx context.Context, name string) error {
	return p.g.pass(ctx, "take the finalizer off EC2NodeClass "+name, func() error { return p.to.ReleaseClass(ctx, name) })
}

// Pools writes no NodePool while the gate is closed.
func (g *Gate) Pools(to control.Pools) control.Pools { return pools{g, to} }

type pools struct {
	g  *Gate
	to control.Pools
}

func (p pools) Pools(ctx context.Context) ([]v1.NodePool, error) { return p.to.Pools(ctx) }

func (p pools) Claims(ctx context.Context) ([]cluster.Claim, error) { return p.to.Claims(ctx) }

func (p pools) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return through(ctx, p.g, "annotate NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.AnnotateClaim(ctx, c, set) })
}

func (p pools) WritePoolStatus(ctx context.Context, o *v1.NodePool) error {
	return p.g.pass(ctx, "write the status of NodePool "+o.Name, func() error { return p.to.WritePoolStatus(ctx, o) })
}

func (p pools) PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error {
	return p.g.pass(ctx, "annotate NodePool "+name, func() error { return p.to.PatchPoolMeta(ctx, name, annotations) })
}

// PoolStatus writes nothing about NodePools while the gate is closed.
func (g *Gate) PoolStatus(to control.PoolStatus) control.PoolStatus { return poolStatus{g, to} }

type poolStatus struct {
	g  *Gate
	to control.PoolStatus
}

func (p poolStatus) CountPool(ctx context.Context, pool string, has resource.List) error {
	return p.g.pass(ctx, "count the nodes of NodePool "+pool, func() error { return p.to.CountPool(ctx, pool, has) })
}

func (p poolStatus) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	return p.g.pass(ctx, "note registrations on NodePool "+pool, func() error { return p.to.RecordRegistrations(ctx, pool, outcomes) })
}

// Moves taints no node while the gate is closed.
func (g *Gate) Moves(to control.Moves) control.Moves { return moves{g, to} }

type moves struct {
	g  *Gate
	to control.Moves
}

func (m moves) TaintNode(ctx context.Context, n cluster.Node) error {
	return m.g.pass(ctx, "taint node "+n.Name, func() error { return m.to.TaintNode(ctx, n) })
}

func (m moves) UntaintNode(ctx context.Context, n cluster.Node) error {
	return m.g.pass(ctx, "untaint node "+n.Name, func() error { return m.to.UntaintNode(ctx, n) })
}

// Notes still recalls while the gate is closed, and remembers nothing.
func (g *Gate) Notes(to control.Notes) control.Notes { return notes{g, to} }

type notes struct {
	g  *Gate
	to control.Notes
}

func (n notes) Recall(ctx context.Context) (disrupt.Memory, error) { return n.to.Recall(ctx) }

func (n notes) Remember(ctx context.Context, m disrupt.Memory) error {
	return n.g.pass(ctx, fmt.Sprintf("remember %d proposed disruptions", len(m.Proposals)), func() error { return n.to.Remember(ctx, m) })
}
