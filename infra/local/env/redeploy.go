package env

import (
	"context"
	"fmt"
	"time"
)

// Redeploy puts the functions, roles and rules of another synthesized stack in place of those that run, as an update of
// the stack does: cluster, nodes, queues and the bucket stay, and what runs is ended where it stands. Its custom
// resources are asked as CloudFormation asks them for an update.
func (e *Env) Redeploy(ctx context.Context, o Options) error {
	if err := e.Host.Close(); err != nil {
		return fmt.Errorf("end the functions before: %w", err)
	}
	if err := e.deployStack(ctx, o.withDefaults()); err != nil {
		return err
	}
	for _, r := range e.Assembly.CustomResources {
		a, err := e.RequestResource(ctx, "Update", r.Type, map[string]any{"Deployment": time.Now().UTC().Format(time.RFC3339)})
		if err != nil {
			return err
		}
		if a.Status != "SUCCESS" {
			return fmt.Errorf("update %s: %s", r.LogicalID, a.Reason)
		}
	}
	if !o.Paused {
		e.Host.ResumeSchedules()
	}
	return nil
}
