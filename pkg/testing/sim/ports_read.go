package sim

import (
	"context"
	"slices"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/testing/objects"
)

// readPorts read the cluster for a decision.
type readPorts struct {
	*claimPorts
	nodes   *nodePorts
	pods    *podPorts
	volumes *volumes
	caches  *processCaches
}

// PendingPods lists the pods that need a node.
func (p *readPorts) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	return callPort(ctx, p.caller, "list homeless pods", "", func() ([]cluster.Pod, error) {
		return slices.DeleteFunc(p.pods.listPods(), func(pod cluster.Pod) bool { return !pod.Provisionable() }), nil
	})
}

// StaticPools lists the pools with a fixed number of nodes.
func (p *readPorts) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	return callPort(ctx, p.caller, "list static pools", "", func() ([]cluster.Pool, error) {
		return slices.DeleteFunc(slices.Clone(p.api.pools), func(pool cluster.Pool) bool { return !pool.Static }), nil
	})
}

// ReadSnapshot reads everything but what AWS knows. Its lists are of different moments, in no certain order.
func (p *readPorts) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s := cluster.Snapshot{}
	reads := []struct {
		name string
		deed func()
	}{
		{"read pods", func() { s.Pods = p.pods.listPods() }},
		{"read nodes", func() { s.Nodes = p.nodes.listNodes() }},
		{"read claims", func() { s.Claims = p.listClaims() }},
		{"read the rest", func() { p.readRest(&s) }},
	}
	errs := make(chan error, len(reads))
	for _, r := range reads {
		go func() { errs <- tryPort(ctx, p.caller, r.name, "", func() error { r.deed(); return nil }) }()
	}
	var first error
	for range reads {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	s.Now = p.toSecond()
	return s, first
}

// readRest reads what a snapshot has beside pods, nodes and claims.
func (p *readPorts) readRest(s *cluster.Snapshot) {
	p.api.readRest(s)
	p.inv.unseen = p.inv.unseen || slices.ContainsFunc(s.Classes,
		func(c instancetypes.Class) bool { return c.Unseen })
}

// ReadClass reads one class.
func (p *readPorts) ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	return callPort(ctx, p.caller, "get class", name, func() (*awsv1.EC2NodeClass, error) {
		c, ok := p.api.classes[name]
		if !ok {
			return nil, &objects.NotFoundError{What: "class " + name}
		}
		return c.DeepCopy(), nil
	})
}

// Wait returns on news that no read of this invocation has shown.
func (p *readPorts) Wait(ctx context.Context) error {
	_, err := callPort[struct{}](ctx, p.caller, "wait", "", nil)
	return err
}

// WithVolumes reads what volumes allow: the claims and volumes in one moment, the limits of nodes in another. Like the
// real adapter it reads nothing if no pod uses any, and says of pods what is so now.
func (p *readPorts) WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if !slices.ContainsFunc(s.Pods, func(pod cluster.Pod) bool { return len(pod.UnreadClaims) > 0 }) {
		return s, nil
	}
	s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes)
	err := tryPort(ctx, p.caller, "read volumes", "", func() error {
		for i, pod := range s.Pods {
			s.Pods[i] = p.volumes.describe(pod, pod.UnreadClaims)
		}
		return nil
	})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	return s, tryPort(ctx, p.caller, "read volume limits", "", func() error {
		for i, n := range s.Nodes {
			s.Nodes[i] = p.volumes.describeNode(n)
		}
		return nil
	})
}

// ListAttachments lists the volumes attached to the nodes.
func (p *readPorts) ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error) {
	return callPort(ctx, p.caller, "list attachments", "",
		func() ([]cluster.Attachment, error) { return p.volumes.attachments(nodes), nil })
}
