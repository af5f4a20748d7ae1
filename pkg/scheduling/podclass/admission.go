package podclass

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/topology"
)

// Admission is one answer to "may a pod with these demands be on that node", asked for many nodes.
type Admission struct {
	ID           string               // text of the demands: a table has one admission for each text
	Number       int                  // place among all of the table, from 0: answers of existing nodes are kept by it
	Alternatives []requirements.Set   // of which a node must meet one; nil admits the pods to no node
	Tolerations  []cluster.Toleration // of the taints of nodes; nil tolerates none
	Requires     []string             // what the nodes have to provide beside labels
	Exclusions   []Exclusion          // DaemonSets that the pods may not be beside, sorted by DaemonSet; nil for none
	ByPool       []*OfferingAnswers   // nil until a pool is asked
	ByModel      [][]int8             // by alternative and model: 0 unknown, 1 yes, -1 no
	pinned       map[DomainPin]*Admission
	Wider        *Admission  // what it was pinned from, nil when it was not; where that says no, this does
	Pin          DomainPin   // what it was pinned to; zero where Wider is nil
	Table        *Admissions // of which it is an entry
}

// OfferingAnswers holds the answers about the offerings of one pool.
type OfferingAnswers struct {
	No         bool    // the pool's taints or labels keep the pod from all of them
	ByOffering []int16 // 0 unknown, -1 no, else 1 + the alternative that holds
}

// HasSingleValue reports whether the key has one value on all nodes that the admission allows.
func (a *Admission) HasSingleValue(key string) bool {
	var value string
	for i, alt := range a.Alternatives {
		r, ok := alt.Get(key)
		if !ok {
			return false
		}
		one, single := r.Single()
		if !single || i > 0 && one != value {
			return false
		}
		value = one
	}
	return len(a.Alternatives) > 0
}

// LeavesDomainOpen reports whether some alternative leaves the domain open.
func (a *Admission) LeavesDomainOpen(key, domain string) bool {
	return slices.ContainsFunc(a.Alternatives, func(s requirements.Set) bool { return s.Has(key, domain) })
}

// DistinctAdmissions keeps the first of equal admissions.
func DistinctAdmissions(asks []*Admission) []*Admission {
	seen := make(map[*Admission]bool, len(asks))
	var out []*Admission
	for _, ask := range asks {
		if !seen[ask] {
			seen[ask] = true
			out = append(out, ask)
		}
	}
	return out
}

// Admissions are all admissions that were asked for, each once, and the DaemonSets that keep pods off nodes.
type Admissions struct {
	ByID       map[string]*Admission // by Admission.ID
	Daemons    []daemon              // DaemonSets in the order of the snapshot; others name them by their index here
	Namespaces topology.Namespaces   // of the snapshot, for the namespace selectors of affinity terms
	Models     int                   // of instance types in pools, so far
	Pools      int                   // so far
}

// NewAdmissions is a table that has only those of the snapshot's DaemonSets, for these classes of pods.
func NewAdmissions(s cluster.Snapshot, waiting []*Class) *Admissions {
	as := &Admissions{ByID: map[string]*Admission{}, Namespaces: topology.IndexNamespaces(s.Namespaces)}
	as.addDaemons(s.Daemons, waiting)
	return as
}

// ForSnapshot is the table with the same answers for a snapshot that may have other namespaces.
func (as *Admissions) ForSnapshot(s cluster.Snapshot) *Admissions {
	out := *as
	out.Namespaces = topology.IndexNamespaces(s.Namespaces)
	return &out
}

// AdmissionFor is the admission to nodes that meet one of the alternatives and have no taints but those tolerated.
func (as *Admissions) AdmissionFor(alternatives []requirements.Set, tolerations []cluster.Toleration) *Admission {
	return as.admissionBeside(Admission{Alternatives: alternatives, Tolerations: tolerations})
}

// AdmissionOf is the admission of the wish, with what keeps its pod off nodes of DaemonSets.
func (as *Admissions) AdmissionOf(x Constraints) *Admission {
	return as.admissionBeside(Admission{Alternatives: x.NodeAlternatives(true), Tolerations: x.EffectiveTolerations(),
		Requires: x.Pod.Requires, Exclusions: as.exclusions(&x.Pod)})
}

// admissionBeside returns the one admission that asks the same.
func (as *Admissions) admissionBeside(asked Admission) *Admission {
	parts := make([]string, len(asked.Alternatives))
	for i, s := range asked.Alternatives {
		parts[i] = s.FullText()
	}
	id := fmt.Sprintf("%d|%s|%v", len(parts), strings.Join(parts, "|"), asked.Tolerations)
	if len(asked.Exclusions)+len(asked.Requires) > 0 {
		id += fmt.Sprintf("|%v%q", asked.Exclusions, asked.Requires)
	}
	if a, ok := as.ByID[id]; ok {
		return a
	}
	a := &asked
	a.ID, a.Number, a.Table, a.ByModel = id, len(as.ByID), as, make([][]int8, len(asked.Alternatives))
	as.ByID[id] = a
	return a
}

// NoDomain stands for the domain of a node without the label: no value of a label, which may be empty.
const NoDomain = "(none)"

// DomainPin ties pods to one domain of a topology key, or to none.
type DomainPin struct {
	Key    string // topology key, canonical
	Domain string // value of that label; NoDomain for nodes without it
}

// PinnedAdmission is the admission with every alternative tied to the domains.
func (as *Admissions) PinnedAdmission(a *Admission, pins []DomainPin) *Admission {
	for _, p := range pins {
		next := a.pinned[p]
		if next == nil {
			var alts []requirements.Set
			at := requirements.Of(p.Key, p.Domain)
			if p.Domain == NoDomain {
				at = requirements.None(p.Key) // outside of every domain
			}
			for _, s := range a.Alternatives {
				if s = s.And(at); len(s.Impossible()) == 0 {
					alts = append(alts, s)
				}
			}
			next = as.admissionBeside(Admission{Alternatives: alts, Tolerations: a.Tolerations, Requires: a.Requires,
				Exclusions: a.Exclusions})
			if next.Wider == nil && next != a {
				next.Wider, next.Pin = a, p
			}
			if a.pinned == nil {
				a.pinned = map[DomainPin]*Admission{}
			}
			a.pinned[p] = next
		}
		a = next
	}
	return a
}
