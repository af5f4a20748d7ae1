package sim

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/api/joiner/v1alpha1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/rollouts"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/testing/objects"
)

// rolloutPorts read and write NodeRollouts and the revisions that they keep, and read alarms.
type rolloutPorts struct {
	*caller
	world  *world
	trial  *rolloutTrial
	listed int // version of the NodeRollout as it was listed last
}

// newRollouts is the controller of NodeRollouts, or nil in a world without one.
func (in Invocation) newRollouts(rules cluster.Settings) *rollouts.Controller {
	if in.Ports.rollouts.trial == nil {
		return nil
	}
	return &rollouts.Controller{Deps: in.deps(rules), Store: in.Ports.rollouts, Alarms: in.Ports.rollouts,
		Classes: in.Ports.read}
}

// ListRollouts lists the NodeRollout with its revisions.
func (p *rolloutPorts) ListRollouts(ctx context.Context) ([]cluster.Rollout, error) {
	return callPort(ctx, p.caller, "list rollouts", "", func() ([]cluster.Rollout, error) {
		var pools []v1.NodePool
		for _, np := range p.world.api.nodePools {
			pools = append(pools, *np)
		}
		p.listed = p.trial.version
		out := translate.Rollout(p.trial.stored, pools)
		for _, k := range p.trial.kept {
			now := p.world.api.classes[k.class.Name]
			c := nodeclass.DescribeClass(nodeclass.RestoreRevision(k.class, now))
			c.Name = cluster.RevisionKey(now.Name, k.name)
			c.Family, c.MemoryOverhead = instancetypes.AL2023, memoryOverhead
			out.Revisions = append(out.Revisions, cluster.NodeRevision{Name: k.name, Resolved: c})
		}
		return []cluster.Rollout{out}, nil
	})
}

// ReadRevision reads a class as a revision keeps it.
func (p *rolloutPorts) ReadRevision(ctx context.Context, class, revision string) (*awsv1.EC2NodeClass, error) {
	return callPort(ctx, p.caller, "read revision", revision, func() (*awsv1.EC2NodeClass, error) {
		i := slices.IndexFunc(p.trial.kept, func(k keptRevision) bool { return k.name == revision })
		if i < 0 {
			return nil, &objects.NotFoundError{What: "revision " + revision}
		}
		return nodeclass.RestoreRevision(p.trial.kept[i].class, p.world.api.classes[class]), nil
	})
}

// KeepRevision stores the class as a revision.
func (p *rolloutPorts) KeepRevision(ctx context.Context, _, revision string, c *awsv1.EC2NodeClass) error {
	return tryPort(ctx, p.caller, "keep revision", revision, func() error {
		if !slices.ContainsFunc(p.trial.kept, func(k keptRevision) bool { return k.name == revision }) {
			p.countMutation("keep revision")
			p.trial.kept = append(p.trial.kept, keptRevision{revision, c.DeepCopy()})
		}
		return nil
	})
}

// ForgetRevision deletes a revision.
func (p *rolloutPorts) ForgetRevision(ctx context.Context, revision string) error {
	return tryPort(ctx, p.caller, "forget revision", revision, func() error {
		p.countMutation("forget revision")
		p.trial.kept = slices.DeleteFunc(p.trial.kept, func(k keptRevision) bool { return k.name == revision })
		return nil
	})
}

// WriteRolloutStatus stores the status, as JSON has it.
func (p *rolloutPorts) WriteRolloutStatus(ctx context.Context, name string, s cluster.RolloutStatus) error {
	return tryPort(ctx, p.caller, "write status of rollout", name, func() error {
		if p.listed != p.trial.version {
			return &objects.ConflictError{What: "NodeRollout " + name}
		}
		o := p.trial.stored.DeepCopy()
		translate.SetRolloutStatus(o, s, time.Now())
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		next := &v1alpha1.NodeRollout{}
		if err := json.Unmarshal(raw, next); err != nil {
			return err
		}
		p.countMutation("write status of rollout")
		p.trial.version++
		p.trial.stored, p.listed = next, p.trial.version
		p.observe(rolloutWritten{})
		return nil
	})
}

// ReadAlarms reads the states of alarms.
func (p *rolloutPorts) ReadAlarms(ctx context.Context, names []string) (map[string]string, error) {
	return callPort(ctx, p.caller, "read alarms", "", func() (map[string]string, error) {
		out := map[string]string{}
		for _, n := range names {
			out[n] = p.world.alarmState()
		}
		return out, nil
	})
}
