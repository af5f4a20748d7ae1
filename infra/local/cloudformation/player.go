package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// Resource is one that exists, or is about to.
type Resource struct {
	ID         string // logical
	Type       string
	Physical   string
	Properties map[string]any // resolved
	Attributes map[string]any // what Ref and Fn::GetAtt answer
}

// Account makes and deletes resources. An error is the service's refusal. What is gone already is no error to delete.
type Account interface {
	// Create makes the resource, and may change its physical id and attributes. A custom resource may fail and exist.
	Create(ctx context.Context, s *Stack, r *Resource) error
	// Update changes it in place. A custom resource may change its physical id.
	Update(ctx context.Context, s *Stack, before Resource, r *Resource) error
	Delete(ctx context.Context, s *Stack, r Resource) error
}

// Verb is what is done to a resource.
type Verb string

// The verbs.
const (
	Create Verb = "Create"
	Update Verb = "Update"
	Delete Verb = "Delete"
)

// Step is one thing done to one resource.
type Step struct {
	Verb     Verb
	ID, Type string
	Physical string
}

// Player is CloudFormation. One seed is one order of everything that dependencies leave open.
type Player struct {
	Account Account
	Seed    uint64
	Fail    func(Step) error // has a step fail before it does anything; nil: none does
	After   func(Step)       // sees each step that was done; nil: nobody

	named int // of the generations of names that were made up
}

// Statuses of a stack.
const (
	CreateComplete         = "CREATE_COMPLETE"
	RollbackComplete       = "ROLLBACK_COMPLETE"
	RollbackFailed         = "ROLLBACK_FAILED"
	UpdateComplete         = "UPDATE_COMPLETE"
	UpdateRollbackComplete = "UPDATE_ROLLBACK_COMPLETE"
	UpdateRollbackFailed   = "UPDATE_ROLLBACK_FAILED"
	DeleteComplete         = "DELETE_COMPLETE"
	DeleteFailed           = "DELETE_FAILED"
)

// Stack is what a player made. Its zero value with a name is one that was never deployed.
type Stack struct {
	Name      string
	ID        string
	Status    string
	Reasons   []string // why what was asked for failed, one for each resource
	Protected bool     // from deletion

	template  *assembly.Template
	live      map[string]*made
	before    map[string]*made // what a rollback that failed goes back to
	operation int
}

// made is a resource with what CloudFormation keeps of it.
type made struct {
	Resource
	needs       []string
	deletion    string // policy
	replacement string // policy
	operation   int    // that made it
	generation  int
}

// PhysicalIDs are the physical ids of what the stack has, by logical id.
func (s *Stack) PhysicalIDs() map[string]string {
	out := map[string]string{}
	for id, m := range s.live {
		out[id] = m.Physical
	}
	return out
}

// Resources are what the stack has, by logical id.
func (s *Stack) Resources() map[string]Resource {
	out := map[string]Resource{}
	for id, m := range s.live {
		out[id] = m.Resource
	}
	return out
}

// ResolveAttribute answers Ref and Fn::GetAtt.
func (s *Stack) ResolveAttribute(id, attribute string) (any, bool) {
	m := s.live[id]
	if m == nil {
		return nil, false
	}
	return m.attribute(attribute)
}

// attribute answers Ref and Fn::GetAtt of the resource.
func (m *made) attribute(attribute string) (any, bool) {
	value, ok := m.Attributes[attribute]
	if !ok && attribute != "Ref" && !isCustom(m.Type) { // an attribute that nobody looks into
		return m.Physical + "." + attribute, true
	}
	return value, ok
}

// play is one operation on one stack.
type play struct {
	*Player
	ctx    context.Context
	stack  *Stack
	chance *rand.Rand

	refused *made // what could not be updated, as it was to become; nil: none
}

func (p *Player) beginOperation(ctx context.Context, s *Stack) *play {
	s.operation++
	s.Reasons = nil
	return &play{Player: p, ctx: ctx, stack: s, chance: rand.New(rand.NewPCG(p.Seed, uint64(s.operation)))}
}

// DeployStack creates the stack, or updates it. A stack whose creation failed is deleted first, as the CDK does.
func (p *Player) DeployStack(ctx context.Context, s *Stack, t *assembly.Template) error {
	for id, r := range t.Resources {
		if _, known := ruleOf(r.Type); !known {
			return fmt.Errorf("deploy stack %s: resource %s: nobody has written a rule for type %s", s.Name, id, r.Type)
		}
	}
	switch s.Status {
	case RollbackComplete, RollbackFailed:
		if err := p.DeleteStack(ctx, s); err != nil {
			return err
		}
	case DeleteFailed:
		return fmt.Errorf("deploy stack %s: it is in state %s and can only be deleted", s.Name, s.Status)
	case UpdateRollbackFailed:
		return fmt.Errorf("deploy stack %s: it is in state %s and cannot be updated", s.Name, s.Status)
	}
	s.ID = t.StackID()
	if s.live == nil || s.Status == DeleteComplete {
		s.live, s.template = map[string]*made{}, t
		p.named++
		return p.beginOperation(ctx, s).createStack(t)
	}
	return p.beginOperation(ctx, s).updateStack(t)
}

// DeleteStack deletes the stack. After a failure what is left can be deleted again.
func (p *Player) DeleteStack(ctx context.Context, s *Stack) error {
	if s.Protected {
		return fmt.Errorf("delete stack %s: it cannot be deleted while TerminationProtection is enabled", s.Name)
	}
	q := p.beginOperation(ctx, s)
	q.removeResources(slices.Collect(maps.Keys(s.live)), false)
	return q.setStatus(DeleteComplete, DeleteFailed)
}

// setStatus sets the status by whether anything failed.
func (q *play) setStatus(well, ill string) error {
	q.stack.Status = well
	if len(q.stack.Reasons) > 0 {
		q.stack.Status = ill
		return fmt.Errorf("stack %s is %s: %w", q.stack.Name, ill, errors.Join(errorsOf(q.stack.Reasons)...))
	}
	return nil
}

func errorsOf(lines []string) (errs []error) {
	for _, line := range lines {
		errs = append(errs, errors.New(line))
	}
	return errs
}

// inOrder does something to each, after all that comes before it. Who fails keeps those away that come after it; all
// stops with the first failure if asked to.
func (q *play) inOrder(ids []string, before func(string) []string, stop bool, do func(string) error) bool {
	waiting, done, well := slices.Sorted(slices.Values(ids)), map[string]bool{}, true
	first := map[string][]string{} // of those that take part
	for _, id := range ids {
		first[id] = before(id)
	}
	for id, all := range first {
		first[id] = slices.DeleteFunc(slices.Clone(all), func(b string) bool { return !slices.Contains(ids, b) })
	}
	for {
		ready := slices.DeleteFunc(slices.Clone(waiting), func(id string) bool {
			return slices.ContainsFunc(first[id], func(b string) bool { return !done[b] })
		})
		if len(ready) == 0 {
			return well
		}
		id := q.pickNext(ready)
		waiting = slices.DeleteFunc(waiting, func(other string) bool { return other == id })
		if err := do(id); err != nil {
			q.stack.Reasons = append(q.stack.Reasons, id+": "+err.Error())
			if well = false; stop {
				return false
			}
			continue
		}
		done[id] = true
	}
}

// pickNext picks one of what could be next. What is slow comes last for a third of the seeds, and first for another.
func (q *play) pickNext(ready []string) string {
	slow := func(id string) bool { r, _ := ruleOf(q.typeOf(id)); return r.slow }
	var some []string
	switch q.Seed % 3 {
	case 1:
		some = slices.DeleteFunc(slices.Clone(ready), slow)
	case 2:
		some = slices.DeleteFunc(slices.Clone(ready), func(id string) bool { return !slow(id) })
	}
	if len(some) == 0 {
		some = ready
	}
	return some[q.chance.IntN(len(some))]
}

func (q *play) typeOf(id string) string {
	if m := q.stack.live[id]; m != nil {
		return m.Type
	}
	return q.stack.template.Resources[id].Type
}

// runStep does one thing unless it is to fail.
func (q *play) runStep(verb Verb, r *Resource, do func() error) error {
	s := Step{Verb: verb, ID: r.ID, Type: r.Type, Physical: r.Physical}
	if q.Fail != nil {
		if err := q.Fail(s); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && q.After != nil {
		q.After(s)
	}
	return err
}

// createStack makes all resources of the template, or none.
func (q *play) createStack(t *assembly.Template) error {
	ids := slices.Collect(maps.Keys(t.Resources))
	if q.inOrder(ids, t.RequiredResources, true, func(id string) error { return q.createResource(t, id, q.named) }) {
		return q.setStatus(CreateComplete, "")
	}
	return q.rollBack(nil, RollbackComplete, RollbackFailed)
}

// createResource creates one resource. What fails and exists all the same is noted, so that it is deleted.
func (q *play) createResource(t *assembly.Template, id string, generation int) error {
	m, err := q.resolveResource(t, id, generation)
	if err != nil {
		return err
	}
	err = q.runStep(Create, &m.Resource, func() error { return q.Account.Create(q.ctx, q.stack, &m.Resource) })
	if err == nil || isCustom(m.Type) && m.Physical != "" {
		q.stack.live[id] = m
	}
	return err
}

// resolveResource resolves one resource of the template.
func (q *play) resolveResource(t *assembly.Template, id string, generation int) (*made, error) {
	r := t.Resources[id]
	properties, err := t.ResolveValue(r.Properties, q.stack.ResolveAttribute)
	if err != nil {
		return nil, err
	}
	answers, err := t.ResourceAttributes(id, generation, q.stack.ResolveAttribute)
	if err != nil {
		return nil, err
	}
	m := &made{needs: t.RequiredResources(id), deletion: r.DeletionPolicy, replacement: r.UpdateReplacePolicy,
		operation: q.stack.operation, generation: generation,
		Resource: Resource{ID: id, Type: r.Type, Physical: fmt.Sprint(answers["Ref"]), Attributes: answers}}
	m.Properties, _ = properties.(map[string]any)
	if isCustom(r.Type) {
		m.Physical = "" // its function says
	}
	return m, nil
}

// removeResources deletes resources, leaves first, except those that stay. Rollback is for those of the operation under
// way.
func (q *play) removeResources(ids []string, rollback bool) {
	dependents := func(id string) (out []string) {
		for other, m := range q.stack.live {
			if slices.Contains(m.needs, id) {
				out = append(out, other)
			}
		}
		return out
	}
	before := map[string][]string{}
	for _, id := range ids {
		before[id] = dependents(id)
	}
	q.inOrder(ids, func(id string) []string { return before[id] }, false, func(id string) error {
		m := q.stack.live[id]
		if !isRetained(m.deletion, rollback) {
			if err := q.deleteResource(m); err != nil {
				return err
			}
		}
		delete(q.stack.live, id)
		return nil
	})
}

func (q *play) deleteResource(m *made) error {
	return q.runStep(Delete, &m.Resource, func() error { return q.Account.Delete(q.ctx, q.stack, m.Resource) })
}

// rollBack deletes what the operation made beside what was there before. The reasons stay those of the failure unless
// the rollback fails too.
func (q *play) rollBack(before map[string]*made, well, ill string) error {
	why := q.stack.Reasons
	q.stack.Reasons = nil
	var fresh []string
	for id := range q.stack.live {
		if before[id] == nil {
			fresh = append(fresh, id)
		}
	}
	q.removeResources(fresh, true)
	status := well
	if len(q.stack.Reasons) > 0 {
		status = ill
	}
	q.stack.Status, q.stack.Reasons = status, append(why, q.stack.Reasons...)
	return fmt.Errorf("stack %s is %s: %w", q.stack.Name, status, errors.Join(errorsOf(q.stack.Reasons)...))
}

// changedProperties are the properties that differ.
func changedProperties(before, after map[string]any) (out []string) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(before[name], after[name]) {
			out = append(out, name)
		}
	}
	return out
}
