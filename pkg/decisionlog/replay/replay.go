package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/scheduling/binpack"
)

// ProvisionPass makes the stored form of a pass of provision. The snapshot is read, not copied.
func ProvisionPass(st decisionlog.PassStamp, s cluster.Snapshot, p plan.Plan) (decisionlog.Pass, error) {
	st.Function = decisionlog.Provision
	out := decisionlog.Pass{Record: newRecord(st, s), Body: decisionlog.Body{Saw: s}}
	addLaunches(&out.Record, p)
	var err error
	if out.Plan, err = json.Marshal(p); err != nil {
		return out, fmt.Errorf("encode plan: %w", err)
	}
	return out, nil
}

// DisruptPass makes the stored form of a pass of disrupt, with what it remembered before.
func DisruptPass(st decisionlog.PassStamp, s cluster.Snapshot, m disruption.Memory,
	p disruption.Plan) (decisionlog.Pass, error) {
	st.Function = decisionlog.Disrupt
	out := decisionlog.Pass{Record: newRecord(st, s), Body: decisionlog.Body{Saw: s}}
	addRemovals(&out.Record, p)
	out.Rollouts = rollout.Decided(s)
	var err error
	if out.Memory, err = json.Marshal(m); err != nil {
		return out, fmt.Errorf("encode memory of disruption: %w", err)
	}
	if out.Plan, err = json.Marshal(p); err != nil {
		return out, fmt.Errorf("encode plan: %w", err)
	}
	return out, nil
}

// Outcome is a stored pass decided again.
type Outcome struct {
	Plan  []byte   // JSON
	Lines []string // the plan in words, as the log has it
	Was   []string // the stored plan in words
	Same  bool     // byte for byte
}

// DecideAgain decides a stored pass from what it saw.
func DecideAgain(p decisionlog.Pass) (Outcome, error) {
	var again Outcome
	var err error
	switch p.Function {
	case decisionlog.Disrupt:
		var memory disruption.Memory
		if len(p.Memory) > 0 {
			if err := json.Unmarshal(p.Memory, &memory); err != nil {
				return again, fmt.Errorf("read stored memory of disruption: %w", err)
			}
		}
		var was disruption.Plan
		if err := json.Unmarshal(p.Plan, &was); err != nil {
			return again, fmt.Errorf("read stored plan: %w", err)
		}
		now, _ := disruption.Next(p.Saw, memory, binpack.ResolveOfferings(p.Saw))
		statuses, steps := rollout.DecideAgain(p.Saw)
		again.Lines = slices.Concat(steps, now.Lines())
		again.Was = slices.Concat(rollout.Decided(p.Saw), was.Lines())
		again.Plan, err = json.Marshal(now)
		again.Same = isSame(p.Saw.Rollouts, statuses)
	default:
		var was plan.Plan
		if err := json.Unmarshal(p.Plan, &was); err != nil {
			return again, fmt.Errorf("read stored plan: %w", err)
		}
		now := provisioning.Decide(p.Saw).Plan
		again.Lines, again.Was = now.Lines(), was.Lines()
		again.Plan, err = json.Marshal(now)
		again.Same = true
	}
	if err != nil {
		return again, fmt.Errorf("encode plan: %w", err)
	}
	again.Same = again.Same && bytes.Equal(again.Plan, p.Plan)
	return again, nil
}

// isSame reports whether the NodeRollouts have the statuses given.
func isSame(all []cluster.Rollout, statuses map[string]cluster.RolloutStatus) bool {
	for _, r := range all {
		st, again := statuses[r.Name]
		now, err := json.Marshal(st)
		was, err2 := json.Marshal(r.Status)
		if again && (err != nil || err2 != nil || !bytes.Equal(now, was)) {
			return false
		}
	}
	return true
}
