package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/objects"
)

// claimStore are the NodeClaims of the API server.
type claimStore struct {
	*engine
	RefuseClaim func(plan.Launch) (label string) // nil, or an empty label: none; set before use
	claims      map[string]*cluster.Claim
}

// CreateClaim stores a claim with our finalizer.
func (p ClaimPorts) CreateClaim(ctx context.Context, l plan.Launch, pool cluster.Pool) (cluster.Claim, error) {
	return doCall(ctx, p.invocation, "create claim", func() (cluster.Claim, error) {
		if p.w.RefuseClaim != nil {
			if label := p.w.RefuseClaim(l); label != "" {
				return cluster.Claim{}, &objects.RefusedError{Labels: []string{label}}
			}
		}
		made := objects.NewClaim(l, pool, p.w.nextID(), p.w.now)
		c := &made
		p.w.claims[c.Name] = c
		return p.w.storeClaim(c), nil
	})
}

// AdoptClaim puts our finalizer and the class's label on the claim.
func (p ClaimPorts) AdoptClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return writeObject(ctx, p.invocation, "adopt claim", c.Name, func() (cluster.Claim, error) {
		have, ok := p.w.claims[c.Name]
		if !ok || have.UID != c.UID || !have.Deleting.IsZero() {
			return cluster.Claim{}, &objects.ConflictError{What: "claim " + c.Name}
		}
		have.Finalizer, have.Labels = true, objects.Merge(have.Labels, objects.AdoptedLabels(*have, c))
		return p.w.storeClaim(have), nil
	})
}

// AnnotateClaim sets annotations of the claim given.
func (p ClaimPorts) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return p.changeClaim(ctx, "annotate claim", c,
		func(have *cluster.Claim) { have.Annotations = objects.Merge(have.Annotations, set) })
}

// ClaimsOf lists the claims of the instances, and those without the label of an instance, up to the first that is
// enough.
func (p ClaimPorts) ClaimsOf(ctx context.Context, instances []string, enough func(cluster.Claim) bool) ([]cluster.Claim,
	error) {
	all, err := p.ListClaims(ctx)
	return objects.ClaimsOf(all, instances, enough), err
}

// LabelClaim sets labels and annotations of the claim given.
func (p ClaimPorts) LabelClaim(ctx context.Context, c cluster.Claim, labels,
	annotations map[string]string) (cluster.Claim, error) {
	return p.changeClaim(ctx, "label claim", c, func(have *cluster.Claim) {
		have.Labels, have.Annotations = objects.Merge(have.Labels, labels), objects.Merge(have.Annotations, annotations)
	})
}

// UnreserveClaim makes the claim given on-demand.
func (p ClaimPorts) UnreserveClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return p.changeClaim(ctx, "unreserve claim", c, func(have *cluster.Claim) {
		have.Labels = onDemandLabels(have.Labels)
	})
}

// onDemandLabels are the labels of what is in no capacity reservation any more.
func onDemandLabels(labels map[string]string) map[string]string {
	out := objects.Merge(labels, map[string]string{instancetypes.LabelCapacityType: instancetypes.OnDemand})
	delete(out, instancetypes.LabelReservationID)
	delete(out, instancetypes.LabelReservation)
	return out
}

// WriteClaimStatus replaces the status. The time of a condition moves with its status only.
func (p ClaimPorts) WriteClaimStatus(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return p.changeClaim(ctx, "write status of claim", c,
		func(have *cluster.Claim) { objects.SetStatus(have, c, p.w.now) })
}

func (p ClaimPorts) changeClaim(ctx context.Context, call string, c cluster.Claim,
	edit func(*cluster.Claim)) (cluster.Claim, error) {
	return writeObject(ctx, p.invocation, call, c.Name, func() (cluster.Claim, error) {
		have := p.w.claims[c.Name]
		if !objects.IsWritable(have, c, call == "annotate claim") {
			return cluster.Claim{}, &objects.ConflictError{What: "claim " + c.Name}
		}
		edit(have)
		return p.w.storeClaim(have), nil
	})
}

// DeleteClaim gives the claim a deletion time.
func (p ClaimPorts) DeleteClaim(ctx context.Context, c cluster.Claim) error {
	_, err := writeObject(ctx, p.invocation, "delete claim", c.Name, func() (struct{}, error) {
		if have, ok := p.w.claims[c.Name]; ok && have.UID == c.UID {
			p.w.deleteClaim(have)
		}
		return struct{}{}, nil
	})
	return err
}

// ReleaseClaim removes our finalizer.
func (p ClaimPorts) ReleaseClaim(ctx context.Context, c cluster.Claim) error {
	return tryCall(ctx, p.invocation, "release claim", func() error {
		if have, ok := p.w.claims[c.Name]; ok && have.UID == c.UID {
			have.Finalizer = false
			p.w.storeClaim(have)
			p.w.removeFinalized()
		}
		return nil
	})
}

// ListClaims lists the claims.
func (p ClaimPorts) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	return doCall(ctx, p.invocation, "list claims", func() ([]cluster.Claim, error) { return p.w.listClaims(), nil })
}

// ReadClaim reads one claim.
func (p ClaimPorts) ReadClaim(ctx context.Context, name string) (c cluster.Claim, found bool, err error) {
	c, err = doCall(ctx, p.invocation, "get claim", func() (cluster.Claim, error) {
		have, ok := p.w.claims[name]
		if found = ok; !ok {
			return cluster.Claim{}, nil
		}
		return *have, nil
	})
	return c, found, err
}

// AddClaim stores a claim as a user does by hand: without finalizer, pool and label of its class. It needs a name and
// what it asks for.
func (w *claimStore) AddClaim(c cluster.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.UID, c.Class, c.Created = fmt.Sprintf("uid-claim-%d", w.nextID()), "default", w.now
	w.claims[c.Name] = &c
	w.storeClaim(&c)
}

// StripClaim takes our finalizer off a claim, as a user might.
func (w *claimStore) StripClaim(claim string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[claim].Finalizer = false
	w.storeClaim(w.claims[claim])
}

// DeleteClaims deletes every claim as kubectl delete does.
func (w *claimStore) DeleteClaims() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		w.deleteClaim(w.claims[name])
	}
}

func (w *claimStore) deleteClaim(c *cluster.Claim) {
	if c.Deleting.IsZero() {
		c.Deleting = w.now
		w.storeClaim(c)
	}
	w.removeFinalized()
}

// removeFinalized removes what is being deleted and has no finalizer left, and nodes' pods with them.
func (w *claimStore) removeFinalized() {
	maps.DeleteFunc(w.claims, func(_ string, c *cluster.Claim) bool { return !c.Deleting.IsZero() && !c.Finalizer })
	maps.DeleteFunc(w.nodeStore.nodes,
		func(_ string, n *cluster.Node) bool { return !n.Deleting.IsZero() && !n.Finalizer })
	for _, name := range slices.Sorted(maps.Keys(w.podStore.pods)) {
		pod := w.podStore.pods[name]
		if _, there := w.nodeStore.nodes[pod.NodeName]; pod.NodeName != "" && !there {
			w.podStore.removePod(pod)
		}
	}
}

// storeClaim gives the claim a new version and returns a copy.
func (w *claimStore) storeClaim(c *cluster.Claim) cluster.Claim {
	c.Version = fmt.Sprint(w.nextID())
	return copyOf(c)
}

func (w *claimStore) listClaims() []cluster.Claim {
	var out []cluster.Claim
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		out = append(out, copyOf(w.claims[name]))
	}
	return out
}

func (w *engine) nextID() int {
	w.made++
	return w.made
}

func copyOf(c *cluster.Claim) cluster.Claim {
	out := *c
	out.Labels, out.Annotations, out.Conditions = maps.Clone(c.Labels), maps.Clone(c.Annotations),
		slices.Clone(c.Conditions)
	return out
}
