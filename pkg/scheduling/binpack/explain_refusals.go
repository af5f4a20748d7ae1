package binpack

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// mostNamed is how many pools are named with one reason.
	mostNamed = 5
	// mostLines is how many different reasons of pools are told.
	mostLines = 40
	// mostAsked is how many pools are asked for a reason.
	mostAsked = 200
)

// poolRefusals are what pools say to a pod. A reason that several pools give is told once.
type poolRefusals struct {
	why   []string // in the order in which they first came
	pools map[string][]string
	asked int
	more  int // pools that were not asked
}

// wantsMore reports whether one more pool is to be asked.
func (r *poolRefusals) wantsMore() bool {
	if r.asked < mostAsked {
		r.asked++
		return true
	}
	r.more++
	return false
}

func (r *poolRefusals) addRefusal(pool, why string) {
	if r.pools == nil {
		r.pools = map[string][]string{}
	}
	if r.pools[why] == nil {
		r.why = append(r.why, why)
	}
	r.pools[why] = append(r.pools[why], pool)
}

func (r *poolRefusals) refusalLines() []string {
	var out []string
	left := r.more
	for i, why := range r.why {
		names := r.pools[why]
		if i >= mostLines {
			left += len(names)
			continue
		}
		switch {
		case len(names) == 1:
			out = append(out, fmt.Sprintf("pool %s: %s", names[0], why))
		case len(names) <= mostNamed:
			out = append(out, fmt.Sprintf("pools %s: %s", strings.Join(names, ", "), why))
		default:
			out = append(out, fmt.Sprintf("pools %s and %d more: %s", strings.Join(names[:mostNamed], ", "),
				len(names)-mostNamed, why))
		}
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("%d more pools have nothing for the pod either", left))
	}
	return out
}

// inOrder are the pools, where there are many first those that have something for the pod.
func (cat *catalog) inOrder(admit *nodeAdmission) []*pool {
	if len(cat.pools) <= cat.few {
		return cat.pools
	}
	var ranks [3][]*pool
	for _, p := range cat.pools {
		switch {
		case !admit.mayAdmitPool(p):
			ranks[2] = append(ranks[2], p)
		case p.aside != "":
			ranks[1] = append(ranks[1], p)
		default:
			ranks[0] = append(ranks[0], p)
		}
	}
	return slices.Concat(ranks[0], ranks[1], ranks[2])
}
