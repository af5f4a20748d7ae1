package binpack

import "slices"

// settleSpread puts pods that spread over domains into the room there is, as far as their skew allows, before they are
// divided evenly: an empty domain where a node must be made is dearer than a domain with room that may take one more.
// Pods that gather are left out, for the first of them decides about all. Pods without a spread take part, lest room
// that they need more is gone.
func (pk *packing) settleSpread(now []*podClass) {
	if pk.roomOnly || !slices.ContainsFunc(pk.a.bins, func(b *bin) bool { return b.offer == nil }) {
		return
	}
	var some []*podClass
	spreads := false
	for _, k := range now {
		v := pk.currentRelaxation(k)
		if !slices.ContainsFunc(slices.Concat(v.host, v.other), func(r topologyRule) bool { return r.what == follow }) {
			some = append(some, k)
			spreads = spreads || slices.ContainsFunc(v.other, func(r topologyRule) bool { return r.what == spread })
		}
	}
	if !spreads {
		return
	}
	pk.roomOnly = true
	pk.useHosts(pk.divideIntoBatches(some))
	pk.roomOnly = false
}
