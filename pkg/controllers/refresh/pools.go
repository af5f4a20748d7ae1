package refresh

import (
	"context"
	"errors"
	"fmt"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
)

func (r *Controller) refreshPools(ctx context.Context, classes []awsv1.EC2NodeClass, k clusterObjects) error {
	pools := k.pools
	var errs []error
	for i := range pools {
		err := r.Shield().Do("NodePool "+pools[i].Name,
			func() error { return r.refreshPool(ctx, &pools[i], classes, k.claims) })
		switch {
		case controllers.IsConflict(err):
			r.Log.Info("NodePool "+pools[i].Name+": conflict, retrying in next refresh", "error", err)
		case err != nil:
			errs = append(errs, fmt.Errorf("refresh NodePool %s: %w", pools[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Controller) refreshPool(ctx context.Context, p *v1.NodePool, classes []awsv1.EC2NodeClass,
	claims []cluster.Claim) error {
	changed := nodeclass.UpdatePool(p, classes, r.Now())
	hash := map[string]string{v1.AnnotationNodePoolHash: p.Hash(),
		v1.AnnotationNodePoolHashVersion: v1.NodePoolHashVersion}
	rehashed := p.Annotations[v1.AnnotationNodePoolHashVersion] != v1.NodePoolHashVersion
	ofPool := func(claim cluster.Claim) bool {
		return claim.Pool == p.Name && (rehashed || claim.Annotations[v1.AnnotationNodePoolHashVersion] != "")
	}
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		if err != nil {
			return err
		}
		if changed {
			controllers.LogDryRun(r.Log, "write status of NodePool "+p.Name)
		}
		if rehashed {
			controllers.LogDryRun(r.Log, rehashActions(claims, hash, ofPool)...)
		}
		if !hasAllOf(p.Annotations, hash) {
			controllers.LogDryRun(r.Log, "annotate NodePool "+p.Name)
		}
		return nil
	}
	if changed {
		if err := r.Pools.WritePoolStatus(ctx, p); err != nil {
			return err
		}
		r.Log.Info("NodePool "+p.Name, "ready", p.StatusConditions().IsTrue(v1.ConditionReady))
	}
	err := r.rehashClaims(ctx, claims, hash, ofPool)
	if hasAllOf(p.Annotations, hash) || errors.Is(err, controllers.ErrPermissionEnded) {
		return err
	}
	return errors.Join(err, r.Pools.PatchPoolMeta(ctx, p.Name, hash))
}

// rehashClaims carries the claims along when the way a drift hash is made has changed. It comes before the owner's own
// annotations: an owner with the new version says that its claims have it, but for those that could not be written
// then. The others go on. The claims given are then as stored.
func (r *Controller) rehashClaims(ctx context.Context, claims []cluster.Claim, hash map[string]string,
	mine func(cluster.Claim) bool) error {
	var errs []error
	for i, c := range claims {
		set := nodeclass.RehashAnnotations(c, hash)
		if !mine(c) || len(set) == 0 {
			continue
		}
		may, err := controllers.MayBegin(ctx, r.Log, rehashAction(c))
		if err != nil || !may {
			return errors.Join(append(errs, err, controllers.ErrPermissionEnded)...)
		}
		written, err := r.Pools.AnnotateClaim(ctx, c, set)
		if err != nil {
			errs = append(errs, controllers.IgnoreConflict(r.Log, err))
			continue
		}
		claims[i] = written
	}
	return errors.Join(errs...)
}

// rehashActions says in words what rehashClaims would do.
func rehashActions(claims []cluster.Claim, hash map[string]string, mine func(cluster.Claim) bool) (actions []string) {
	for _, c := range claims {
		if mine(c) && len(nodeclass.RehashAnnotations(c, hash)) > 0 {
			actions = append(actions, rehashAction(c))
		}
	}
	return actions
}

func rehashAction(c cluster.Claim) string {
	return "annotate NodeClaim " + c.Name + " with the new hash"
}
