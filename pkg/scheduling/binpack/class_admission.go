package binpack

import (
	"fmt"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// nodeAdmission is one answer to "may a pod with these demands be on that node", asked for many nodes.
type nodeAdmission struct {
	id          string
	number      int
	alternative []requirements.Set
	tolerations []cluster.Toleration
	exclusions  []exclusion
	byPool      []*offerAnswers // nil until a pool is asked
	byModel     [][]int8        // by alternative and model: 0 unknown, 1 yes, -1 no
	pinned      map[domainPin]*nodeAdmission
	wider       *nodeAdmission // what it was pinned from, nil when it was not; where that says no, this does
	pin         domainPin
	table       *admissions
}

// offerAnswers are those about the offers of one pool.
type offerAnswers struct {
	no      bool    // the pool's taints or labels keep the pod from all of them
	byOffer []int16 // 0 unknown, -1 no, else 1 + the alternative that holds
}

// hasSingleValue reports whether the key has one value on all nodes that the admission allows.
func (a *nodeAdmission) hasSingleValue(key string) bool {
	value := ""
	for _, alt := range a.alternative {
		r, ok := alt.Get(key)
		if !ok {
			return false
		}
		one, single := r.Single()
		if !single || value != "" && one != value {
			return false
		}
		value = one
	}
	return value != ""
}

// leavesDomainOpen reports whether some alternative leaves the domain open.
func (a *nodeAdmission) leavesDomainOpen(key, domain string) bool {
	for _, s := range a.alternative {
		if s.Has(key, domain) {
			return true
		}
	}
	return false
}

// distinctAdmissions keeps the first of equal admissions.
func distinctAdmissions(asks []*nodeAdmission) []*nodeAdmission {
	seen := make(map[*nodeAdmission]bool, len(asks))
	var out []*nodeAdmission
	for _, ask := range asks {
		if !seen[ask] {
			seen[ask] = true
			out = append(out, ask)
		}
	}
	return out
}

// admissions are all admissions that were asked for, each once, and the DaemonSets that keep pods off nodes.
type admissions struct {
	byID       map[string]*nodeAdmission
	daemons    []daemonOverhead
	namespaces []cluster.Namespace
	models     int // of instance types in pools, so far
}

// newAdmissions is a table that has only those of the snapshot's DaemonSets.
func newAdmissions(s cluster.Snapshot) *admissions {
	as := &admissions{byID: map[string]*nodeAdmission{}, namespaces: s.Namespaces}
	as.addDaemons(s.Daemons)
	return as
}

// forSnapshot is the table with the same answers for a snapshot that may have other namespaces.
func (as *admissions) forSnapshot(s cluster.Snapshot) *admissions {
	out := *as
	out.namespaces = s.Namespaces
	return &out
}

// admissionFor is the admission to nodes that meet one of the alternatives and have no taints but those tolerated.
func (as *admissions) admissionFor(alternatives []requirements.Set, tolerations []cluster.Toleration) *nodeAdmission {
	return as.admissionBeside(alternatives, tolerations, nil)
}

// admissionOf is the admission of the wish, with what keeps its pod off nodes of DaemonSets.
func (as *admissions) admissionOf(x constraints) *nodeAdmission {
	return as.admissionBeside(x.nodeAlternatives(true), x.effectiveTolerations(), as.exclusions(&x.pod))
}

func (as *admissions) admissionBeside(alternatives []requirements.Set, tolerations []cluster.Toleration,
	exclusions []exclusion) *nodeAdmission {
	parts := make([]string, len(alternatives))
	for i, s := range alternatives {
		parts[i] = requirementText(s)
	}
	id := fmt.Sprintf("%d|%s|%v", len(parts), strings.Join(parts, "|"), tolerations)
	if len(exclusions) > 0 {
		id += fmt.Sprintf("|%v", exclusions)
	}
	if a, ok := as.byID[id]; ok {
		return a
	}
	a := &nodeAdmission{id: id, number: len(as.byID), alternative: alternatives, tolerations: tolerations,
		exclusions: exclusions,
		byModel:    make([][]int8, len(alternatives)), table: as}
	as.byID[id] = a
	return a
}

// domainPin ties pods to one domain of a topology key.
type domainPin struct{ key, domain string }

// pinnedAdmission is the admission with every alternative tied to the domains.
func (as *admissions) pinnedAdmission(a *nodeAdmission, pins []domainPin) *nodeAdmission {
	for _, p := range pins {
		next := a.pinned[p]
		if next == nil {
			var alts []requirements.Set
			at := requirements.Of(p.key, p.domain)
			if p.domain == "" {
				at = requirements.None(p.key) // outside of every domain
			}
			for _, s := range a.alternative {
				if s = s.And(at); len(s.Impossible()) == 0 {
					alts = append(alts, s)
				}
			}
			next = as.admissionBeside(alts, a.tolerations, a.exclusions)
			if next.wider == nil && next != a {
				next.wider, next.pin = a, p
			}
			if a.pinned == nil {
				a.pinned = map[domainPin]*nodeAdmission{}
			}
			a.pinned[p] = next
		}
		a = next
	}
	return a
}

// requirementText is a requirement set in full; its String is shortened for people.
func requirementText(s requirements.Set) string {
	var b strings.Builder
	for _, r := range s.All() {
		fmt.Fprintf(&b, "%s %t %t %q", r.Key, r.Not, r.Present, r.Values)
		for _, n := range []*int64{r.Min, r.Max} {
			if n != nil {
				fmt.Fprintf(&b, " %d", *n)
			} else {
				b.WriteString(" -")
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}
