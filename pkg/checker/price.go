package checker

import (
	"cmp"
	"slices"
	"strings"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
)

// price works out what each pool may launch, at the prices and with the capacity that NodeOverlays give (spec core.md §1.8).
func (t *trial) price() {
	overlays := slices.DeleteFunc(slices.Clone(t.Snapshot.Overlays), func(o cluster.Overlay) bool { return o.Message != "" })
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
		touched := touches(o, pools, t.sold)
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
			t.sold[p.Name][i] = overlaid(p.Name, typ, set)
		}
	}
}

// priceOf and amountOf name what overlays set.
func priceOf(pool, typ string, o catalog.Offering) string {
	return strings.Join([]string{pool, typ, o.Zone, o.CapacityType, reservation(o), "price"}, "|")
}

func amountOf(pool, typ, name string) string {
	return strings.Join([]string{pool, typ, name, "amount"}, "|")
}

// touches lists everything that the overlay is about.
func touches(o *cluster.Overlay, pools []cluster.Pool, sold map[string][]catalog.Type) []string {
	var out []string
	for _, p := range pools {
		for _, typ := range sold[p.Name] {
			hit := false
			for _, f := range typ.Offerings {
				if !concerns(o, p, typ, f) {
					continue
				}
				hit = true
				if o.Price != nil || o.Change != nil {
					out = append(out, priceOf(p.Name, typ.Name, f))
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

// concerns reports whether the overlay is about the offering: its requirements hold for a value of each label.
func concerns(o *cluster.Overlay, p cluster.Pool, typ catalog.Type, f catalog.Offering) bool {
	var open []wish
	labels := map[string]string{}
	for _, r := range wishes(typ.Requirements.All()) {
		if v, single := r.only(); single {
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
	for _, w := range wishes(o.Requirements.All()) {
		met := w.met(labels)
		if _, known := labels[w.Key]; !known {
			for _, r := range open {
				met = met || r.Key == w.Key && slices.ContainsFunc(r.Values, func(v string) bool { return w.met(map[string]string{r.Key: v}) })
			}
		}
		if !met {
			return false
		}
	}
	return true
}

func overlaid(pool string, typ catalog.Type, set map[string]*cluster.Overlay) catalog.Type {
	typ.Offerings = slices.Clone(typ.Offerings)
	for i := range typ.Offerings {
		f := &typ.Offerings[i]
		o := set[priceOf(pool, typ.Name, *f)]
		unknown := !f.Available && f.Price <= 0
		switch {
		case o == nil:
		case o.Price != nil:
			f.Price, f.Available = *o.Price, f.Available || unknown
		case !unknown:
			f.Price = max(0, f.Price*(1+o.Change.Percent/100)+o.Change.USD)
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
				typ.Capacity, typ.Allocatable = typ.Capacity.With(c.Name, c.Count), typ.Allocatable.With(c.Name, c.Count)
			}
		}
	}
	return typ
}
