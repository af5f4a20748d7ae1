package kube

import (
	"context"
	"slices"
	"strings"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// mostNamed bounds the instances that one question names; about more all claims are read.
const mostNamed = 100

// fewUnnamed caps the claims without the label of their instance in one read where one may be enough: in a burst of
// launches there are hundreds.
const fewUnnamed = 10

// ClaimsOf lists the NodeClaims that have one of the instances by their label and, if not all of the instances are
// found so, those without that label, sorted by name. Where one is enough, if enough is not nil, it need not list
// others. The API server answers from memory, and sends next to nothing however many claims there are.
func (c Claims) ClaimsOf(ctx context.Context, instances []string, enough func(cluster.Claim) bool) ([]cluster.Claim,
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

// ListClaims lists the NodeClaims whose class is an EC2NodeClass, sorted by name.
func (c Claims) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	out, _, err := c.allClaims(ctx)
	slices.SortFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (c Claims) allClaims(ctx context.Context) (out []cluster.Claim, version string, err error) {
	statuses := map[string]storedStatus{}
	out, version, err = listAll(ctx, c.connection, listQuery{place: claimPath()},
		func(l *karpv1.NodeClaimList) []cluster.Claim {
			mine := onlyOurs(l)
			for i := range mine {
				statuses[string(mine[i].UID)] = storedStatusOf(&mine[i])
			}
			return translatePage(mine, translate.Claim)
		})
	if err == nil {
		c.seen.keepClaims(version, statuses)
	}
	return out, version, err
}

// listClaims lists those of our claims that are asked for, and no further page after one with a claim that is enough.
func (c Claims) listClaims(ctx context.Context, q listQuery, enough func(cluster.Claim) bool) ([]cluster.Claim,
	error) {
	done := false
	q.place, q.enough = claimPath(), func() bool { return done }
	out, _, err := listAll(ctx, c.connection, q, func(l *karpv1.NodeClaimList) []cluster.Claim {
		mine := onlyOurs(l)
		c.seen.keepSingleClaims(mine)
		page := translatePage(mine, translate.Claim)
		done = done || enough != nil && slices.ContainsFunc(page, enough)
		return page
	})
	return out, err
}

func onlyOurs(l *karpv1.NodeClaimList) []karpv1.NodeClaim {
	return slices.DeleteFunc(l.Items, func(n karpv1.NodeClaim) bool {
		return !translate.IsOurClass(n.Spec.NodeClassRef)
	})
}
