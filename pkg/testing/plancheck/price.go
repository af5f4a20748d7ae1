package plancheck

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// applyOverlays works out what each pool may launch, at the prices and with the capacity that NodeOverlays give.
func (t *planCheck) applyOverlays() {
	overlays := slices.DeleteFunc(slices.Clone(t.Snapshot.Overlays),
		func(o cluster.Overlay) bool { return o.Message != "" })
	slices.SortFunc(overlays, func(a, b cluster.Overlay) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	pools := slices.DeleteFunc(slices.Clone(t.Snapshot.Pools), func(p cluster.Pool) bool { return p.Deleting })
	for _, p := range t.Snapshot.Pools {
		t.sold[p.Name] = slices.Clone(t.Sells(p.Class))
	}
	set := map[string]*cluster.Overlay{} // what is set, to who did
	last := map[string]*cluster.Overlay{}
	for i := range overlays {
		o := &overlays[i]
		touched := touchedKeys(o, pools, t.sold)
		if slices.ContainsFunc(touched, func(k string) bool { return last[k] != nil && last[k].Weight == o.Weight }) {
			continue // it contradicts another, and holds nowhere
		}
		for _, k := range touched {
			if last[k] = o; set[k] == nil {
				set[k] = o
			}
		}
	}
	for _, p := range pools {
		for i, typ := range t.sold[p.Name] {
			t.sold[p.Name][i] = declaredPrice(p, overlaidPrice(p.Name, typ, set))
		}
	}
}

// declaredPrice adds what a node of the pool costs its owner beside AWS. The type's offerings are the pool's own.
func declaredPrice(p cluster.Pool, typ instancetypes.Type) instancetypes.Type {
	for k := range typ.Offerings {
		if o := &typ.Offerings[k]; p.DeclaredNodeUSD != nil && (o.Available || o.Price > 0) {
			o.Price, o.NodeUSD = o.Price+*p.DeclaredNodeUSD, o.NodeUSD+*p.DeclaredNodeUSD
		}
	}
	return typ
}

// offeringPrice and amountOf name what overlays set.
func offeringPrice(pool, typ string, o instancetypes.Offering) string {
	return strings.Join([]string{pool, typ, o.Zone, o.CapacityType, reservationOf(o), "price"}, "|")
}

func amountOf(pool, typ, name string) string {
	return strings.Join([]string{pool, typ, name, "amount"}, "|")
}

// touchedKeys lists everything that the overlay is about.
func touchedKeys(o *cluster.Overlay, pools []cluster.Pool, sold map[string][]instancetypes.Type) []string {
	var out []string
	for _, p := range pools {
		for _, typ := range sold[p.Name] {
			hit := false
			for _, f := range typ.Offerings {
				if !overlayConcerns(o, p, typ, f) {
					continue
				}
				hit = true
				if o.Price != nil || o.Change != nil {
					out = append(out, offeringPrice(p.Name, typ.Name, f))
				}
			}
			for _, c := range o.Capacity {
				if hit {
					out = append(out, amountOf(p.Name, typ.Name, c.Name))
				}
			}
		}
	}
	return out
}

// overlayConcerns reports whether the overlay is about the offering: its requirements hold for a value of each label.
func overlayConcerns(o *cluster.Overlay, p cluster.Pool, typ instancetypes.Type, f instancetypes.Offering) bool {
	var open []labelRequirement
	labels := map[string]string{}
	for _, r := range labelRequirements(typ.Requirements.All()) {
		if v, single := r.singleValue(); single {
			labels[r.Key] = v
		} else {
			open = append(open, r)
		}
	}
	for k, v := range p.Labels { // each on its own
		labels[k] = v
	}
	labels[labelPool], labels[labelZone], labels[labelCapacity] = p.Name, f.Zone, f.CapacityType
	delete(labels, labelZoneID)
	if f.ZoneID != "" {
		labels[labelZoneID] = f.ZoneID
	}
	for _, w := range labelRequirements(o.Requirements.All()) {
		met := w.isMet(labels)
		if _, known := labels[w.Key]; !known {
			for _, r := range open {
				met = met || r.Key == w.Key && slices.ContainsFunc(r.Values,
					func(v string) bool { return w.isMet(map[string]string{r.Key: v}) })
			}
		}
		if !met {
			return false
		}
	}
	return true
}

func overlaidPrice(pool string, typ instancetypes.Type, set map[string]*cluster.Overlay) instancetypes.Type {
	typ.Offerings = slices.Clone(typ.Offerings)
	for i := range typ.Offerings {
		f := &typ.Offerings[i]
		o := set[offeringPrice(pool, typ.Name, *f)]
		unknown := !f.Available && f.Price <= 0
		switch {
		case o == nil:
		case o.Price != nil:
			f.Price, f.Available = *o.Price+f.NodeUSD, f.Available || unknown
		case !unknown:
			beside := f.NodeUSD
			f.Price = max(0, (f.Price-beside)*(1+o.Change.Percent/100)+o.Change.USD) + beside
		}
	}
	for k, o := range set { // each amount is set once
		parts := strings.Split(k, "|")
		if len(parts) != 4 || parts[0] != pool || parts[1] != typ.Name {
			continue
		}
		for _, c := range o.Capacity {
			if c.Name == parts[2] {
				if strings.HasPrefix(c.Name, "hugepages-") {
					typ.Allocatable.Memory = max(0, typ.Allocatable.Memory-c.Count+typ.Allocatable.Get(c.Name))
				}
				typ.Capacity, typ.Allocatable = typ.Capacity.With(c.Name, c.Count),
					typ.Allocatable.With(c.Name, c.Count)
			}
		}
	}
	return typ
}
