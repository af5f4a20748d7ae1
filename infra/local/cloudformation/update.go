package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// updateStack makes the stack what the template says: create and change, switch, and only then delete what was replaced
// or left out. A failure before that puts everything back.
func (q *play) updateStack(t *assembly.Template) error {
	t.KeepSecrets(q.stack.template)
	before, old := maps.Clone(q.stack.live), q.stack.template
	q.stack.template = t
	var replaced []*made
	ids := slices.Collect(maps.Keys(t.Resources))
	if !q.inOrder(ids, t.RequiredResources, true, func(id string) error { return q.changeResource(t, id, &replaced) }) {
		q.stack.template = old
		return q.revertUpdate(before, replaced)
	}
	q.cleanUp(t, replaced)
	// What cannot be cleaned up is left alone and does not fail the update.
	q.stack.Reasons = nil
	return q.setStatus(UpdateComplete, "")
}

// changeResource creates, changes or replaces one resource, or finds that it is as it is to be.
func (q *play) changeResource(t *assembly.Template, id string, replaced *[]*made) error {
	have := q.stack.live[id]
	if have == nil {
		q.named++ // a name of what an earlier update left out may be taken still
		return q.createResource(t, id, q.named)
	}
	want, err := q.resolveResource(t, id, have.generation)
	if err != nil {
		return err
	}
	differs := changedProperties(have.Properties, want.Properties)
	if have.Type != want.Type {
		return fmt.Errorf("update of resource type is not permitted: %s to %s", have.Type, want.Type)
	}
	if len(differs) == 0 { // policies change with the template
		same := *have
		same.deletion, same.replacement, same.needs = want.deletion, want.replacement, want.needs
		q.stack.live[id] = &same
		return nil
	}
	r, _ := ruleOf(have.Type)
	if isCustom(have.Type) && slices.Contains(differs, "ServiceToken") {
		return errors.New("modifying service token is not allowed")
	}
	if r.needsReplacement(differs) {
		if r.name != "" && want.Properties[r.name] != nil && want.Properties[r.name] == have.Properties[r.name] {
			return fmt.Errorf("CloudFormation cannot update a stack when a custom-named resource requires replacing: "+
				"rename %s and update the stack again", have.Physical)
		}
		q.named++
		if err := q.createResource(t, id, q.named); err != nil {
			return err
		}
		*replaced = append(*replaced, have)
		return nil
	}
	return q.changeInPlace(have, want, replaced)
}

func (q *play) changeInPlace(have, want *made, replaced *[]*made) error {
	want.Physical, want.operation = have.Physical, have.operation
	if !isCustom(have.Type) {
		want.Attributes = have.Attributes
	}
	err := q.runStep(Update, &want.Resource, func() error {
		return q.Account.Update(q.ctx, q.stack, have.Resource, &want.Resource)
	})
	if err != nil {
		q.refused = want
		return err
	}
	q.stack.live[want.ID] = want
	if want.Physical != have.Physical {
		*replaced = append(*replaced, have)
	}
	return nil
}

// cleanUp deletes what was replaced and what the template leaves out.
func (q *play) cleanUp(t *assembly.Template, replaced []*made) {
	gone := map[string]*made{} // under names that no template has
	var ids []string
	for _, m := range replaced {
		if !isRetained(m.replacement, false) {
			name := m.ID + " before"
			gone[name], ids = m, append(ids, name)
		}
	}
	var out []string
	for id := range q.stack.live {
		if _, stays := t.Resources[id]; !stays {
			out = append(out, id)
		}
	}
	order := func(name string) (first []string) {
		for other, m := range gone {
			if slices.Contains(m.needs, gone[name].ID) {
				first = append(first, other)
			}
		}
		return first
	}
	q.removeResources(out, false) // which may hold what was replaced
	for name, m := range gone {
		q.stack.live[name] = m
	}
	q.inOrder(ids, order, false, func(name string) error { return q.deleteResource(gone[name]) })
	for name := range gone {
		delete(q.stack.live, name)
	}
}

// revertUpdate puts back what an update changed: properties first, then what is new goes.
func (q *play) revertUpdate(before map[string]*made, replaced []*made) error {
	why := q.stack.Reasons
	q.stack.Reasons = nil
	fresh := map[string]*made{}
	for _, m := range replaced { // what was made in its place goes
		now := q.stack.live[m.ID]
		fresh[m.ID+" new"] = now
		q.stack.live[m.ID] = m
	}
	if q.refused != nil { // it is asked for what was before, like those that were changed
		q.stack.live[q.refused.ID] = q.refused
	}
	q.putBack(before)
	for _, m := range fresh {
		if err := q.deleteResource(m); err != nil {
			q.stack.Reasons = append(q.stack.Reasons, m.ID+": "+err.Error())
		}
	}
	failed := q.stack.Reasons
	err := q.rollBack(before, UpdateRollbackComplete, UpdateRollbackFailed)
	if len(failed) > 0 {
		q.stack.Status, q.stack.before = UpdateRollbackFailed, before
	}
	q.stack.Reasons = slices.Concat(why, failed, q.stack.Reasons)
	return errors.Join(err, errors.Join(errorsOf(q.stack.Reasons)...))
}

// putBack gives what is not as it was its properties of before.
func (q *play) putBack(before map[string]*made) {
	needs := func(id string) []string { return before[id].needs }
	q.inOrder(slices.Collect(maps.Keys(before)), needs, false, func(id string) error {
		was, now := before[id], q.stack.live[id]
		if was == now || len(changedProperties(was.Properties, now.Properties)) == 0 {
			q.stack.live[id] = was
			return nil
		}
		r := was.Resource
		err := q.runStep(Update, &r, func() error { return q.Account.Update(q.ctx, q.stack, now.Resource, &r) })
		if err == nil {
			q.stack.live[id] = was
		}
		return err
	})
}

// ContinueRollback goes on with the rollback of an update that failed. What is to be skipped counts as put back,
// whatever it is in the account.
func (p *Player) ContinueRollback(ctx context.Context, s *Stack, skip ...string) error {
	if s.Status != UpdateRollbackFailed {
		return fmt.Errorf("continue the rollback of stack %s: it is in state %s", s.Name, s.Status)
	}
	q := p.beginOperation(ctx, s)
	for _, id := range skip {
		if s.before[id] == nil {
			return fmt.Errorf("continue the rollback of stack %s: there is no resource %s", s.Name, id)
		}
		s.live[id] = s.before[id]
	}
	q.putBack(s.before)
	return q.setStatus(UpdateRollbackComplete, UpdateRollbackFailed)
}
