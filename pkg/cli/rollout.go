package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"joiner.sh/pkg/api/joiner/v1alpha1"
	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/model/cluster"
)

const rolloutHelp = `Show what a NodeRollout is at, or change that.

status   what it tries, the step, the evidence, and what it waits for
resume   go on after a pause; try a revision again that failed; follow the EC2NodeClass again after undo
abort    stop the revision that is tried, as if it had failed
undo     launch nothing but the last good revision, and replace nodes of others by it within budgets`

// rolloutVerbs returns what can be done about a NodeRollout, each with the patch that does it.
func rolloutVerbs() map[string]func(cluster.Rollout) (map[string]any, error) {
	return map[string]func(cluster.Rollout) (map[string]any, error){"status": nil, "resume": resumePatch, "abort": abortPatch,
		"undo": undoPatch}
}

func rolloutCommand(term terminalOutput) *cobra.Command {
	var t clusterTarget
	cmd := &cobra.Command{
		Use: "rollout status|resume|abort|undo NAME", Short: "Show, resume, abort or undo a NodeRollout", Long: rolloutHelp,
		Example: "  joiner rollout status canary\n  joiner rollout resume canary",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &inputError{errors.New("say what is to be done, and the name of the NodeRollout")}
			}
			if _, known := rolloutVerbs()[args[0]]; !known {
				return &inputError{fmt.Errorf("%q is unknown; use status, resume, abort or undo", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRollout(cmd.Context(), t, term, args[0], args[1])
		},
	}
	t.addFlags(cmd)
	return cmd
}

func runRollout(ctx context.Context, t clusterTarget, term terminalOutput, verb, name string) error {
	l, err := t.connectCluster()
	if err != nil {
		return err
	}
	all, err := l.kube.Rollouts.ListRollouts(ctx)
	if err != nil {
		return unreachableHint(l, err)
	}
	i := slices.IndexFunc(all, func(r cluster.Rollout) bool { return r.Name == name })
	if i < 0 {
		return &inputError{fmt.Errorf("there is no NodeRollout %s", name)}
	}
	if patch := rolloutVerbs()[verb]; patch != nil {
		change, err := patch(all[i])
		if err != nil {
			return &inputError{err}
		}
		path := "/apis/" + v1alpha1.Group + "/" + v1alpha1.Version + "/" + v1alpha1.NodeRolloutResource + "/" + name
		if err := l.kube.Objects.Patch(ctx, path, change); err != nil {
			return err
		}
		return term.writeText(fmt.Sprintf("NodeRollout %s: %s is asked for; Joiner acts within a minute\n", name, verb))
	}
	return term.writeText(rolloutText(all[i]))
}

// rolloutText returns all that is known of a rollout.
func rolloutText(r cluster.Rollout) string {
	var b strings.Builder
	b.WriteString(status.RolloutLine(r) + "\n")
	fmt.Fprintf(&b, "NodePools %s\nrevision %s, last good %s\n", strings.Join(r.Pools, ", "), r.Status.Revision, r.Status.LastGood)
	for _, e := range r.Status.Evidence {
		b.WriteString("  " + e + "\n")
	}
	for _, t := range r.Status.Tried {
		fmt.Fprintf(&b, "  NodeClaim %s: %s\n", t.Name, t.State)
	}
	return b.String()
}

func annotationsPatch(set map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": set}}
}

// resumePatch lets it go on with what it waits for.
func resumePatch(r cluster.Rollout) (map[string]any, error) {
	if r.Pinned != "" {
		return map[string]any{"spec": map[string]any{"pinnedRevision": nil}}, nil
	}
	if r.Status.ResumeToken == "" {
		return nil, fmt.Errorf("NodeRollout %s waits for nobody: it is %s", r.Name, r.Status.Phase)
	}
	return annotationsPatch(map[string]any{v1alpha1.AnnotationResume: r.Status.ResumeToken, v1alpha1.AnnotationAbort: nil}), nil
}

// abortPatch stops what is tried.
func abortPatch(r cluster.Rollout) (map[string]any, error) {
	if r.Status.Phase != cluster.RolloutProgressing && r.Status.Phase != cluster.RolloutPaused {
		return nil, fmt.Errorf("NodeRollout %s tries nothing: it is %s", r.Name, r.Status.Phase)
	}
	return annotationsPatch(map[string]any{v1alpha1.AnnotationAbort: r.Status.Revision, v1alpha1.AnnotationResume: nil}), nil
}

// undoPatch pins the last good revision; once the one that was tried is that, the one before.
func undoPatch(r cluster.Rollout) (map[string]any, error) {
	to := r.Status.LastGood
	if r.Status.Revision == to {
		to = r.Status.PreviousGood
	}
	if to == "" {
		return nil, fmt.Errorf("NodeRollout %s knows no revision to go back to", r.Name)
	}
	return map[string]any{"spec": map[string]any{"pinnedRevision": to}}, nil
}
