package lifecycle

import (
	"fmt"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// How many nodes of a class in a row never become usable before no more are bought: so many, of two types or more, or
// where that is more so large a part of the nodes of the NodePool. Of one type it is fewer, so that others are tried
// before.
const (
	uselessAllowed       = 3
	uselessOfTypeAllowed = 2
	uselessPart          = 100
)

// noteUseless holds against the claim's class and type that its node never became usable, if that is why it ends: no
// node registered, or something that nobody takes away kept it from being initialized. Where another node of the class,
// or of the type, has become usable since, this one was broken.
func (r registrar) noteUseless(c cluster.Claim, reason string) []plan.Action {
	why := r.whyUseless(c, reason)
	class, known := r.s.ClassOf(c.ClassKey())
	of := instancetypes.OfferingKeyOf(c.Labels).Type
	if why == "" || !known || of == "" || !c.IsOfClass(class) {
		return nil
	}
	inPool, alike, others := 0, 0, 0
	for i := range r.s.Claims {
		other := &r.s.Claims[i]
		if other.Pool == c.Pool {
			inPool++
		}
		k := other.Condition(v1.ConditionInitialized)
		if k.Status != "True" || !k.Since.After(c.Created) || other.Class != c.Class || !other.IsOfClass(class) {
			continue
		}
		if others++; instancetypes.OfferingKeyOf(other.Labels).Type == of {
			alike++
		}
	}
	note := plan.Action{Do: plan.NoteUseless, Claim: c.Name, Instance: c.InstanceID(), Why: why}
	hold := func(instanceType string, allowed int) {
		note.Unused = append(note.Unused, instancetypes.UnusedNode{Class: class.Name, Type: instanceType, Of: of,
			Cause: class.CauseOf(instanceType), Instance: c.InstanceID(), Allowed: max(allowed, inPool/uselessPart),
			Why: c.Name + ": " + why})
	}
	if alike == 0 {
		hold(of, uselessOfTypeAllowed)
	}
	if others == 0 {
		hold("", uselessAllowed)
	}
	if len(note.Unused) == 0 {
		return nil
	}
	return []plan.Action{note}
}

// whyUseless says why the claim's node did not become usable, if the claim ends for that and no resource is missing.
func (r registrar) whyUseless(c cluster.Claim, reason string) string {
	nodes := r.nodes[c.ProviderID]
	switch {
	case reason == registrationTimeout && c.ProviderID != "":
		return fmt.Sprintf("no node registered for it within %s", r.s.Rules.RegistrationTimeout)
	case reason == initializationTimeout && len(nodes) == 1:
		if lacks, why := r.whyUninitialized(c, nodes[0]); lacks != v1.ReasonResourceNotRegistered {
			return why
		}
	}
	return ""
}
