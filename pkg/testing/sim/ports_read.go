package sim

import (
	"context"
	"slices"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/objects"
)

// readPorts read the cluster for a decision.
type readPorts struct {
	*claimPorts
	nodes   *nodePorts
	pods    *podPorts
	volumes *volumes
	caches  *processCaches
}

// StaticPools lists the pools with a fixed number of nodes.
func (p *readPorts) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	return callPort(ctx, p.caller, "list static pools", "", func() ([]cluster.Pool, error) {
		return slices.DeleteFunc(slices.Clone(p.api.pools), func(pool cluster.Pool) bool { return !pool.Static }), nil
	})
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

// WithVolumes reads what volumes allow: the claims and volumes in one moment, the limits of nodes in another. Like the
// real adapter it reads nothing if no pod uses any, and says of pods what is so now.
func (p *readPorts) WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if !s.HasUnreadVolumes() {
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
