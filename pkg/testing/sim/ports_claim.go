package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	decided "joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/objects"
)

// claimPorts read and write NodeClaims.
type claimPorts struct {
	*caller
	api *apiServer
	ec2 *ec2
}

// CreateClaim stores a claim with our finalizer.
func (p *claimPorts) CreateClaim(ctx context.Context, l decided.Launch, pool cluster.Pool) (cluster.Claim, error) {
	return callPort(ctx, p.caller, "create claim", fmt.Sprint(l.Pods), func() (cluster.Claim, error) {
		p.made++
		c := &claim{maker: p.inv, made: time.Now(), Claim: objects.NewClaim(l, pool, p.made, p.toSecond())}
		c.Generation = 1
		for _, key := range l.Pods {
			if pod := p.api.pods[key]; pod != nil {
				c.pods = append(c.pods, pod.UID)
			}
		}
		p.countMutation("create claim")
		p.observe(claimCreated{c, l})
		p.api.claims[c.Name], p.api.byUID[c.UID] = c, c
		return p.api.writeClaim(c, p.inv), nil
	})
}

// AnnotateClaim sets annotations of the claim given.
func (p *claimPorts) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return p.changeClaim(ctx, "annotate claim", c, func(have *claim) bool {
		if isWithin(set, have.Annotations) {
			return false
		}
		p.observe(claimAnnotated{p.inv, have, set})
		have.Annotations = objects.Merge(have.Annotations, set)
		if pods, ok := set[v1.AnnotationNominatedPods]; ok {
			p.api.noteNomination(have, strings.Split(pods, ","))
		}
		return true
	})
}

// UnreserveClaim is not asked for: nothing is reserved in this EC2.
func (p *claimPorts) UnreserveClaim(_ context.Context, c cluster.Claim) (cluster.Claim, error) {
	return c, errors.New("unreserve claim " + c.Name + ": nothing is reserved")
}

// LabelClaim sets labels and annotations of the claim given.
func (p *claimPorts) LabelClaim(ctx context.Context, c cluster.Claim, labels,
	annotations map[string]string) (cluster.Claim,
	error) {
	return p.changeClaim(ctx, "label claim", c, func(have *claim) bool {
		if isWithin(labels, have.Labels) && isWithin(annotations, have.Annotations) {
			return false
		}
		have.Labels, have.Annotations = objects.Merge(have.Labels, labels),
			objects.Merge(have.Annotations, annotations)
		return true
	})
}

// WriteClaimStatus replaces the status. The time of a condition moves with its status only.
func (p *claimPorts) WriteClaimStatus(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return p.changeClaim(ctx, "write status of claim", c, func(have *claim) bool {
		before := have.Claim
		objects.SetStatus(&have.Claim, c, p.toSecond())
		if before.ProviderID == "" {
			p.ec2.assignInstance(have)
		}
		p.observe(claimStatusWritten{have, before})
		return before.ProviderID != have.ProviderID || before.NodeName != have.NodeName ||
			!before.LastPodEvent.Equal(have.LastPodEvent) || !slices.Equal(before.Conditions, have.Conditions)
	})
}

// changeClaim changes a claim that is still as given. A change that changes nothing makes no new version.
func (p *claimPorts) changeClaim(ctx context.Context, call string, c cluster.Claim,
	edit func(*claim) bool) (cluster.Claim,
	error) {
	return callPort(ctx, p.caller, call, c.Name, func() (cluster.Claim, error) {
		have := p.api.claims[c.Name]
		if have == nil || !objects.IsWritable(&have.Claim, c, call == "annotate claim") {
			if have != nil && have.UID == c.UID {
				p.observe(writeRefused{p.inv, have})
			}
			return cluster.Claim{}, &objects.ConflictError{What: "claim " + c.Name}
		}
		before := have.Claim
		if !edit(have) {
			return have.Claim, nil
		}
		if !onlyStability(before, have.Claim) {
			p.countMutation(call)
		}
		return p.api.writeClaim(have, p.inv), nil
	})
}

// onlyStability reports whether nothing is new but how quiet the claim's node is. That follows pods by up to a minute,
// and is no unrest.
func onlyStability(before, after cluster.Claim) bool {
	rest := func(all []cluster.Condition) []cluster.Condition {
		return slices.DeleteFunc(slices.Clone(all), objects.IsType(v1.ConditionConsolidatable))
	}
	news := !before.LastPodEvent.Equal(after.LastPodEvent) || len(before.Conditions) != len(after.Conditions)
	return news && before.ProviderID == after.ProviderID && before.NodeName == after.NodeName &&
		slices.Equal(rest(before.Conditions), rest(after.Conditions))
}

// AdoptClaim puts our finalizer and the class's label on the claim.
func (p *claimPorts) AdoptClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return callPort(ctx, p.caller, "adopt claim", c.Name, func() (cluster.Claim, error) {
		have, ok := p.api.claims[c.Name]
		if !ok || have.UID != c.UID || !have.Deleting.IsZero() {
			return cluster.Claim{}, &objects.ConflictError{What: "claim " + c.Name}
		}
		set := objects.AdoptedLabels(have.Claim, c)
		if have.Finalizer && isWithin(set, have.Labels) {
			return have.Claim, nil
		}
		have.Finalizer, have.Labels = true, objects.Merge(have.Labels, set)
		p.countMutation("adopt claim")
		return p.api.writeClaim(have, p.inv), nil
	})
}

// DeleteClaim gives the claim a deletion time.
func (p *claimPorts) DeleteClaim(ctx context.Context, c cluster.Claim) error {
	return tryPort(ctx, p.caller, "delete claim", c.Name, func() error {
		if have, ok := p.api.claims[c.Name]; ok && have.UID == c.UID {
			if have.Deleting.IsZero() {
				p.observe(claimDeleted{p.inv, have})
			}
			p.api.deleteClaim(have, p.inv)
		}
		return nil
	})
}

// ReleaseClaim removes our finalizer.
func (p *claimPorts) ReleaseClaim(ctx context.Context, c cluster.Claim) error {
	return tryPort(ctx, p.caller, "release claim", c.Name, func() error {
		have, ok := p.api.claims[c.Name]
		if !ok || have.UID != c.UID || !have.Finalizer {
			return nil
		}
		p.observe(claimReleased{have})
		p.countMutation("release claim")
		have.Finalizer, have.released = false, true
		p.api.writeClaim(have, p.inv)
		p.api.collectDeleted()
		return nil
	})
}

// ReadClaim reads one claim as it is now.
func (p *claimPorts) ReadClaim(ctx context.Context, name string) (cluster.Claim, bool, error) {
	found := false
	c, err := callPort(ctx, p.caller, "get claim", name, func() (cluster.Claim, error) {
		have, ok := p.api.claims[name]
		if found = ok; !ok {
			return cluster.Claim{}, nil
		}
		return have.Claim, nil
	})
	return c, found, err
}

// ListClaims lists the claims.
func (p *claimPorts) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	return callPort(ctx, p.caller, "list claims", "", func() ([]cluster.Claim, error) { return p.listClaims(), nil })
}

// ClaimsOf lists the claims of the instances, and those without the label of an instance, up to the first that is
// enough.
func (p *claimPorts) ClaimsOf(ctx context.Context, instances []string,
	enough func(cluster.Claim) bool) ([]cluster.Claim,
	error) {
	return callPort(ctx, p.caller, "list claims of instances", "", func() ([]cluster.Claim, error) {
		return objects.ClaimsOf(p.listClaims(), instances, enough), nil
	})
}

func (p *claimPorts) listClaims() []cluster.Claim {
	p.seen[aClaim] = p.api.version
	var out []cluster.Claim
	for _, name := range slices.Sorted(maps.Keys(p.api.claims)) {
		out = append(out, p.api.claims[name].Claim)
	}
	return out
}
