package lowerbound

import (
	"math"
	"slices"
)

// anyOfChoice is that pods which are of any of some classes may be of this one.
type anyOfChoice struct {
	class, one int32
	limited    int32 // which limited offer of the master problem it is, -1 for one without a limit
}

// addChoices lets pods that are of any of some classes be of each of these.
func (g *limitedProblem) addChoices() {
	for k, c := range g.Classes {
		for _, one := range c.AnyOf {
			if g.m.row[k] < 0 || g.m.row[one] < 0 {
				continue
			}
			x := column{class: []int32{int32(k), one}, amount: []float64{1, -1}}
			if c.Each > 0 {
				g.m.addLimited(c.Each)
				x.of = int32(len(g.m.keys.limited))
			}
			g.m.addColumn(x)
			g.choices = append(g.choices, anyOfChoice{class: int32(k), one: one, limited: x.of - 1})
		}
	}
}

// noteChoices notes by class which choices make other pods of it.
func (f *fillGiver) noteChoices() {
	f.made, f.chosen = make([][]int32, len(f.Classes)), make([][]int, len(f.Classes))
	for k, c := range f.Classes {
		f.chosen[k] = make([]int, len(c.AnyOf))
	}
	for i, x := range f.choices {
		f.made[x.one] = append(f.made[x.one], int32(i))
	}
}

// choose has so many pods make the choice.
func (f *fillGiver) choose(i int32, pods float64) {
	x := f.choices[i]
	f.unheld[x.class] -= pods
	if x.limited >= 0 {
		f.m.keys.limited[x.limited].limit -= pods
	}
	f.chosen[x.class][slices.Index(f.Classes[x.class].AnyOf, x.one)] += int(pods)
}

// available is how many pods that are left may be of the class.
func (f *fillGiver) available(k int32) float64 {
	n := math.Floor(f.unheld[k])
	for _, i := range f.made[k] {
		n += f.mayChoose(i)
	}
	return n
}

// mayChoose is how many more pods may make the choice.
func (f *fillGiver) mayChoose(i int32) float64 {
	x := f.choices[i]
	pods := f.unheld[x.class]
	if x.limited >= 0 {
		pods = min(pods, f.m.keys.limited[x.limited].limit)
	}
	return math.Floor(pods)
}

// takePods takes so many pods of the class off those that are left, first those that can be of no other.
func (f *fillGiver) takePods(k int32, pods float64) {
	own := min(pods, math.Floor(f.unheld[k]))
	f.unheld[k] -= own
	pods -= own
	for _, i := range f.made[k] {
		n := min(pods, f.mayChoose(i))
		f.choose(i, n)
		pods -= n
	}
}
