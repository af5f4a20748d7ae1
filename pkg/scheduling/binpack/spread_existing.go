package binpack

import "slices"

// settleSpread puts pods that spread over domains into the room there is, as far as their skew allows, before they are
// divided evenly: an empty domain where a node must be made is dearer than a domain with room that may take one more.
// Pods that gather are left out, for the first of them decides about all. Pods without a spread take part, lest room
// that they need more is gone.
func (a *solution) settleSpread(now []*podClass) {
	if a.roomOnly || !slices.ContainsFunc(a.bins, func(b *bin) bool { return b.offer == nil }) {
		return
	}
	var some []*podClass
	spreads := false
	for _, k := range now {
		v := a.currentRelaxation(k)
		if !slices.ContainsFunc(slices.Concat(v.host, v.other), func(r topologyRule) bool { return r.what == follow }) {
			some = append(some, k)
			spreads = spreads || slices.ContainsFunc(v.other, func(r topologyRule) bool { return r.what == spread })
		}
	}
	if !spreads {
		return
	}
	a.roomOnly = true
	a.useHosts(a.divideIntoBatches(some))
	a.roomOnly = false
}
