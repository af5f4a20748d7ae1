package packing

import (
	"slices"
	"strings"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// nominatedPlaces puts pods onto the claims that were made for them.
type nominatedPlaces struct {
	pk      *packing
	classOf map[string]*podclass.Class // of pods that wait
	taken   map[string]bool            // pods that have a place
}

// placeNominated puts pods onto the claims that were made for them, so that a pass that comes again launches nothing
// twice. A place of a pod that is gone falls to one that came in its stead. Where they may stand was decided when the
// claim was made; only the node itself and the pods that stand there already are asked again. It reports whether there
// were any.
func (pk *packing) placeNominated() bool {
	p := nominatedPlaces{pk: pk, classOf: map[string]*podclass.Class{}, taken: map[string]bool{}}
	for _, k := range pk.a.W.Classes.List {
		for _, name := range k.Pods {
			p.classOf[name] = k
		}
	}
	for i, b := range pk.a.Bins {
		for _, name := range b.Wanted {
			p.place(name, i, b)
		}
	}
	p.placeSuccessors()
	for i := range pk.a.Rest {
		pk.a.Rest[i] = slices.DeleteFunc(slices.Clone(pk.a.Rest[i]), func(name string) bool { return p.taken[name] })
	}
	return len(p.taken) > 0
}

// place puts a pod on a host, unless it does not wait, has a place or does not fit there.
func (p nominatedPlaces) place(name string, host int, b *capacity.Bin) bool {
	a, k := p.pk.a, p.classOf[name]
	if k == nil || p.taken[name] {
		return false
	}
	standing := a.siteOf(a.W.Nodes.Hosts[host])      // the others of the claim do not count against each other
	standing.Trusted, standing.Disks = true, b.Disks // but their volumes do
	v := k.LastRelaxation()
	alt := b.AlternativeFor(v.Admission)
	if alt < 0 || capacity.FitCount(k.Need, b.Room) == 0 || a.W.Topology.MaxPodsByHostRules(v, standing) == 0 {
		return false
	}
	p.taken[name] = true
	a.recordLoad(capacity.PodLoad{Settled: true, Pod: v, Admission: v.Admission, Alt: alt, Pods: []string{name}}, b)
	return true
}

// placeSuccessors gives each place of a pod that does not wait any more to one that waits, has no place and differs
// from it in the last part of its name alone: an evicted pod comes again under such a name. A controller's pods are
// alike, so which of them it is does not matter.
func (p nominatedPlaces) placeSuccessors() {
	var waiting map[string][]string // by the name without its last part
	for i, b := range p.pk.a.Bins {
		for _, name := range b.Wanted {
			if p.classOf[name] != nil {
				continue
			}
			if waiting == nil {
				waiting = p.podsWithoutPlace()
			}
			stem := nameStem(name)
			if list := waiting[stem]; len(list) > 0 && p.place(list[0], i, b) {
				waiting[stem] = list[1:]
			}
		}
	}
}

// podsWithoutPlace are the waiting pods that have no place, sorted, by the stems of their names.
func (p nominatedPlaces) podsWithoutPlace() map[string][]string {
	out := map[string][]string{}
	for _, k := range p.pk.a.W.Classes.List {
		for _, name := range k.Pods {
			if stem := nameStem(name); stem != "" && !p.taken[name] {
				out[stem] = append(out[stem], name)
			}
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// nameStem is the name of a pod, with its namespace, without what its controller made up; empty if it has no such part.
func nameStem(name string) string {
	return name[:strings.LastIndexByte(name, '-')+1]
}
