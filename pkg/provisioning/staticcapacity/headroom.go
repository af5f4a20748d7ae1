package staticcapacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/binpack"
)

// mostTypes caps the types that a claim names that must keep to a limit on the price.
const mostTypes = 600

// PoolHeadroom holds what is left of the limit on what the nodes of a static pool cost together, and makes launches
// that keep to it.
type PoolHeadroom struct {
	pool    cluster.Pool
	types   []pricedType // cheapest first
	relax   bool
	limited bool
	left    int64 // millionths of a USD per hour
	last    plan.Launch
	refused string
	made    bool // last is of all types
}

// pricedType is a type and what it costs where it is dearest, in millionths of a USD per hour.
type pricedType struct {
	instancetypes.Type
	most int64
}

// PurseOf returns what is left to the pool. Nodes that go count until they are gone, as they do for limits.nodes.
func PurseOf(s cluster.Snapshot, p cluster.Pool, types []instancetypes.Type) *PoolHeadroom {
	out := &PoolHeadroom{pool: p, relax: s.Rules.RelaxMinValues, limited: slices.Contains(p.Limited, cluster.LimitUSD),
		left: math.MaxInt64}
	for _, t := range types {
		most := int64(0)
		for _, o := range t.Offerings {
			if o.Available && len(o.Paid) == 0 && o.Meets(p.Requirements) {
				most = max(most, cluster.MillionthsUSD(o.Price))
			}
		}
		out.types = append(out.types, pricedType{t, most})
	}
	if !out.limited {
		return out
	}
	out.types = slices.DeleteFunc(out.types, func(t pricedType) bool {
		return t.most == 0 ||
			!p.Requirements.Intersects(t.Requirements)
	})
	slices.SortFunc(out.types, func(a, b pricedType) int {
		return cmp.Or(cmp.Compare(a.most, b.most),
			strings.Compare(a.Name, b.Name))
	})
	out.types = out.types[:min(len(out.types), mostTypes)]
	out.left = p.Limits.Get(cluster.LimitUSD)
	for _, node := range hostsOf(s)[p.Name] {
		out.left -= node.LimitCharge(types)
	}
	return out
}

// NextLaunch is a node of the pool's template, one of so many that are wanted. In a pool that bounds the price it is of
// types so cheap that all of them can be paid for whatever EC2 gives, or of the cheapest where even that is too much.
// Where there is none, refused says why.
func (m *PoolHeadroom) NextLaunch(wanted int) (l plan.Launch, refused string) {
	if !m.limited {
		if !m.made {
			m.last, m.refused = binpack.TemplateNode(m.pool, isUnpriced(m.types), m.relax)
			m.made = true
		}
		return m.last.Clone(), m.refused
	}
	if len(m.types) > 0 && m.types[0].most > m.left {
		return l, fmt.Sprintf("%.4f USD/h are left of its limit of %.4f, and a node costs %.4f",
			cluster.USD(max(m.left, 0)), cluster.USD(m.pool.Limits.Get(cluster.LimitUSD)), cluster.USD(m.types[0].most))
	}
	some := m.types
	for len(some) > 1 && some[len(some)-1].most > max(m.left/int64(max(wanted, 1)), some[0].most) {
		some = some[:len(some)-1]
	}
	if l, refused = binpack.TemplateNode(m.pool, isUnpriced(some), m.relax); refused != "" {
		return l, refused
	}
	l.Requirements = l.Requirements.And(requirements.Of(corev1.LabelInstanceTypeStable, l.Types...))
	m.left -= some[len(some)-1].most
	return l, ""
}

func isUnpriced(all []pricedType) []instancetypes.Type {
	return lists.Of(all, func(t pricedType) instancetypes.Type { return t.Type })
}
