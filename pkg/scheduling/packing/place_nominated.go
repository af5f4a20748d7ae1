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
	for _, class := range pk.a.W.Classes.List {
		for _, name := range class.Pods {
			p.classOf[name] = class
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
	s, class := p.pk.a, p.classOf[name]
	if class == nil || p.taken[name] {
		return false
	}
	standing := s.siteOf(s.W.Nodes.Hosts[host])      // the others of the claim do not count against each other
	standing.Trusted, standing.Disks = true, b.Disks // but their volumes do
	pod := class.LastRelaxation()
	alt := b.AlternativeFor(pod.Admission)
	if alt < 0 || capacity.FitCount(class.Need, b.Room) == 0 || s.W.Topology.MaxPodsByHostRules(pod, standing) == 0 {
		return false
	}
	p.taken[name] = true
	s.recordLoad(capacity.PodLoad{Settled: true, Pod: pod, Admission: pod.Admission, Alt: alt, Pods: []string{name}}, b)
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
	for _, class := range p.pk.a.W.Classes.List {
		for _, name := range class.Pods {
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
