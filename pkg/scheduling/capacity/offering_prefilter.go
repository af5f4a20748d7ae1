package capacity

import (
	"fmt"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

const (
	// ManyPools is up to how many pools all are looked at.
	ManyPools = 100
	// mostAlike caps the pools that are alike, but for their names and limits, at which one pass looks.
	mostAlike = 16
	// mostOfferings is at how many offerings a pass looks at no more pools, and fittingPools about how many of those
	// that may launch everything have so many.
	mostOfferings = 250_000
	fittingPools  = 31
)

// poolFilter keeps the work of a pass small where there are very many pools. It leaves out pools that no waiting pod
// may use, and those that are like others which come first.
type poolFilter struct {
	b      *CatalogBuilder
	asks   []*podclass.Admission // of the pods that wait, at their most relaxed
	named  map[string]bool       // pools that a pod or a claim names
	keys   map[string]bool       // of labels that a pod looks at
	alike  map[string]int        // pools looked at
	full   map[string]bool       // kinds of pools of which one without limits is looked at
	byPool bool                  // pools are told apart by a spread or an affinity
}

// setAside decides which pools nobody looks at, and why.
func (b *CatalogBuilder) setAside() {
	if !b.catalog.HasMany() {
		return
	}
	f := &poolFilter{b: b, named: map[string]bool{}, keys: map[string]bool{}, alike: map[string]int{},
		full: map[string]bool{}}
	f.prepareFilter()
	for _, p := range b.catalog.Pools {
		p.Aside = f.asideReason(p)
	}
}

func (f *poolFilter) prepareFilter() {
	softTaint := f.b.S.HasSoftTaints()
	for _, class := range f.b.Classes.List {
		list := podclass.RelaxationSteps(class.Pod, f.b.S.Rules.IgnorePreferences, softTaint)
		f.asks = append(f.asks, f.b.catalog.Admissions.AdmissionOf(list[len(list)-1]))
		for _, x := range list {
			f.noteKeys(x.NodeAlternatives(true))
		}
	}
	f.asks = podclass.DistinctAdmissions(f.asks)
	for _, d := range f.b.catalog.Admissions.Daemons {
		f.noteKeys(d.Admission.Alternatives)
	}
	for i := range f.b.S.Pods {
		podclass.AddTopologyKeys(&f.b.S.Pods[i], f.keys)
	}
	f.byPool = f.keys[api.LabelNodePool]
	for _, node := range f.b.All {
		if node.Claim != nil && node.Allocatable().IsZero() {
			f.named[node.Pool()] = true // what it may become has to be known
		}
	}
}

// noteKeys notes the keys that somebody looks at, and pools by their names.
func (f *poolFilter) noteKeys(alternatives []requirements.Set) {
	for _, alt := range alternatives {
		for _, r := range alt.All() {
			if r.Key != api.LabelNodePool {
				f.keys[r.Key] = true
				continue
			}
			for _, v := range r.Values {
				f.named[v] = true
			}
		}
	}
}

// asideReason says why nobody looks at what the pool can launch, empty when somebody does.
func (f *poolFilter) asideReason(p *OfferingPool) string {
	if !slices.ContainsFunc(f.asks, func(a *podclass.Admission) bool { return p.MayAdmit(a) }) && !f.named[p.Name] {
		return "no pod that waits may be on its nodes"
	}
	if over := p.exhaustedLimits(); over != "" {
		return over
	}
	if f.named[p.Name] || f.byPool {
		return ""
	}
	unseen := []string{api.LabelNodePool}
	for _, r := range p.Required.All() {
		if !podclass.IsWellKnownLabel(r.Key) && !f.keys[r.Key] {
			unseen = append(unseen, r.Key)
		}
	}
	id := fmt.Sprintf("%d|%s|%v", p.Weight, p.Required.Without(unseen...).FullText(), p.Taints)
	if f.full[id] || f.alike[id] >= mostAlike {
		return "it is like other pools, which are used first"
	}
	f.alike[id]++
	f.full[id] = len(p.Limited) == 0
	return ""
}

// MayAdmit reports whether pods of the admission may be on nodes of the pool, as far as can be told without looking at
// what it launches.
func (p *OfferingPool) MayAdmit(a *podclass.Admission) bool {
	if p.refuses(a) {
		return false
	}
	return slices.ContainsFunc(a.Alternatives, func(alt requirements.Set) bool {
		return len(p.Required.Refusals(alt, func(key string) bool {
			return podclass.IsWellKnownLabel(key) || key == api.LabelRegistered || key == api.LabelInitialized
		})) == 0
	})
}

// exhaustedLimits names the limits that no further node can keep, empty for none.
func (p *OfferingPool) exhaustedLimits() string {
	var parts []string
	for _, name := range p.Limited {
		used := p.Used.List.Get(name)
		if name == string(api.LimitNodes) {
			used = p.Used.Nodes
		}
		if used >= p.Limits.Get(name) {
			parts = append(parts, p.LimitText(name, used))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " and ")
}
