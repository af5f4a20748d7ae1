package prices

import (
	"encoding/binary"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// mostHostSorts caps the sorts of existing nodes with which the prices of pods reckon: the work grows by the third
// power of them and of kinds of pods together. A quarter costs half-empty clusters 1.5 % more; half and double were not
// measured.
const mostHostSorts = 100

// hostOfferings makes offerings of the nodes that are there, for prices that reckon with their room.
type hostOfferings struct {
	w   *packing.Problem
	out *ShadowPrices
}

// addHosts adds the nodes that are there to the problem, alike ones as one offering of which there are so many. Alike
// are nodes that admit the same pods and have about the same room: the less exactly, the more there are. The prices are
// only better or worse for it: what proves a bound looks at each node by itself.
func (h hostOfferings) addHosts() {
	hosts, admitted := h.admittingHosts()
	for base := 2.0; ; base *= base {
		sorts := h.alikeHosts(hosts, admitted, base)
		if len(sorts) > mostHostSorts && !math.IsInf(base, 1) {
			continue
		}
		for _, o := range sorts {
			h.out.Problem.Offerings = append(h.out.Problem.Offerings, *o)
		}
		return
	}
}

// alikeHosts are the nodes that are there as offerings, those as one that admit the same pods and whose rooms differ by
// no more than about the factor: with the room that they have on an average.
func (h hostOfferings) alikeHosts(hosts []*capacity.Bin, admitted []string, factor float64) []*cover.Offering {
	sorts := map[string]*cover.Offering{}
	var order []*cover.Offering
	for i, b := range hosts {
		id := []byte(admitted[i])
		for _, x := range b.Room {
			id = binary.AppendVarint(id, wholePower(float64(x), factor))
		}
		o := sorts[string(id)]
		if o == nil {
			o = &cover.Offering{Room: make([]float64, len(b.Room)), Holds: h.classesOn(b)}
			sorts[string(id)], order = o, append(order, o)
		}
		o.Limit++
		for r, x := range packing.ScaleNeed(b.Room, h.out.Units) {
			o.Room[r] += x
		}
	}
	for _, o := range order {
		for r := range o.Room {
			o.Room[r] /= o.Limit
		}
	}
	return order
}

// wholePower is the highest power of the factor that is no more than x, at least 0: the same on every processor, which
// logarithms are not.
func wholePower(x, factor float64) (n int64) {
	for y := factor; y <= x; y *= factor {
		n++
	}
	return n
}

// admittingHosts are the nodes that take some pods, and which by admission.
func (h hostOfferings) admittingHosts() (hosts []*capacity.Bin, admitted []string) {
	var asks []*podclass.Admission
	for _, c := range h.out.Classes {
		asks = append(asks, c.admit)
	}
	asks = podclass.DistinctAdmissions(asks)
	for _, b := range h.w.Nodes.Hosts {
		bits, some := make([]byte, len(asks)), false
		for i, ask := range asks {
			if bits[i] = '0'; b.AlternativeFor(ask) >= 0 {
				bits[i], some = '1', true
			}
		}
		if some && slices.ContainsFunc(h.out.Classes,
			func(c priceClass) bool { return capacity.FitCount(c.need, b.Room) > 0 }) {
			hosts, admitted = append(hosts, b), append(admitted, string(bits))
		}
	}
	return hosts, admitted
}

// classesOn are the classes that wait and may be on the node.
func (h hostOfferings) classesOn(b *capacity.Bin) []int32 {
	var holds []int32
	for i, c := range h.out.Classes {
		if h.out.Problem.Classes[i].Count > 0 && b.AlternativeFor(c.admit) >= 0 {
			holds = append(holds, int32(i))
		}
	}
	return holds
}
