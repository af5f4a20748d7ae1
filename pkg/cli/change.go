package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/migrate"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// applyEdits makes the edits of a report, each on the condition that its object is still as it was seen.
func (f migrateFlags) applyEdits(ctx context.Context, l clusterLink, facts migrate.Facts, r migrate.Report,
	term terminalOutput) error {
	switch {
	case !f.back && facts.Leader != "":
		return fmt.Errorf("nothing was changed: %s leads the cluster; scale Karpenter to 0 first", facts.Leader)
	case f.back && facts.Joiner != "":
		return fmt.Errorf("nothing was changed: Joiner works at this moment (%s); deploy with mode observe first",
			facts.Joiner)
	}
	var errs []error
	for _, e := range r.Edits {
		if err := carryOut(ctx, l, facts.Snapshot, e); err != nil {
			errs = append(errs, err)
			continue
		}
		term.writeMessage("did %s %s: %s", e.Do, e.Name, e.Why)
	}
	if len(r.Edits) == 0 {
		term.writeMessage("there is nothing to change")
	}
	return errors.Join(errs...)
}

func carryOut(ctx context.Context, l clusterLink, s cluster.Snapshot, e migrate.Edit) error {
	switch e.Do {
	case migrate.Adopt, migrate.Unmark, migrate.End:
		for _, c := range s.Claims {
			if c.Name != e.Name {
				continue
			}
			var err error
			switch e.Do {
			case migrate.End:
				err = l.kube.DeleteClaim(ctx, c)
			case migrate.Adopt:
				_, err = l.kube.AdoptClaim(ctx, c)
			default:
				_, err = l.kube.AnnotateClaim(ctx, c, map[string]string{api.AnnotationDisruptionCommand: ""})
			}
			return err
		}
	case migrate.Forget:
		return removeWritten(ctx, l, e)
	case migrate.Untaint, migrate.Open, migrate.Admit:
		return changeTaints(ctx, l, s, e)
	}
	return fmt.Errorf("%s %s: it is gone", e.Do, e.Name)
}

// changeTaints takes a taint of Joiner's off a node.
func changeTaints(ctx context.Context, l clusterLink, s cluster.Snapshot, e migrate.Edit) error {
	admit := func(ctx context.Context, n cluster.Node) error {
		return errors.Join(l.kube.UntaintRevision(ctx, n, api.TaintFailedRevision),
			l.kube.UntaintRevision(ctx, n, api.TaintPreviousRevision))
	}
	do := map[migrate.Do]func(context.Context, cluster.Node) error{migrate.Untaint: l.kube.UntaintNode,
		migrate.Open: l.kube.OpenNode, migrate.Admit: admit}[e.Do]
	for _, n := range s.Nodes {
		if n.Name == e.Name {
			return do(ctx, n)
		}
	}
	return fmt.Errorf("%s %s: it is gone", e.Do, e.Name)
}

// removeWritten removes from an object what Joiner wrote there for itself.
func removeWritten(ctx context.Context, l clusterLink, e migrate.Edit) error {
	keys := migrate.WrittenKeys()
	kind, name, _ := strings.Cut(e.Name, "/")
	if kind == api.NodePoolKind {
		return l.kube.RemovePoolAnnotations(ctx, name, keys...)
	}
	return l.kube.PatchClassMeta(ctx, name, kube.MetaChange{Remove: keys})
}

// isFresh reports whether a lease has not run out.
func isFresh(o *unstructured.Unstructured) bool {
	renewed, _, _ := unstructured.NestedString(o.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaseDurationSeconds")
	at, err := time.Parse(time.RFC3339, renewed)
	return err == nil && factsTime().Before(at.Add(time.Duration(seconds)*time.Second))
}
