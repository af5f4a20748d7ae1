package lowerbound

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/cover"
)

// detailLevel says how closely a reduction looks at the classes.
type detailLevel struct {
	rays   int  // shapes that stand for the classes of one kind and size
	few    int  // so many classes of one kind and size are priced each for itself
	levels bool // classes of one kind are told apart by size
	apart  int  // of so many classes, the largest, limits on how many one node holds are kept to
}

// detailLevels are the steps from close to coarse. Half of the shapes in the first cost half-empty clusters 0.6 % more,
// and one size for all 1.5 %.
func detailLevels() []detailLevel {
	return []detailLevel{{4, 3, true, math.MaxInt}, {2, 1, false, 0}}
}

// mostRows caps the classes of the smaller problem, if it can be helped: the work grows with their third power.
const mostRows = 300

// classPart is the amount of a class of the reduced problem that stands for one pod.
type classPart struct {
	class  int32
	amount float64
}

// reducedProblem is a smaller problem whose prices give valid prices of the original: many classes that may be on the
// same offerings and need two resources in different ratios are told as parts of a few shapes, their rays. What a
// fractional node can hold of pods it can hold of their parts, so prices under which no node holds too much worth of
// parts are good for pods.
type reducedProblem struct {
	problem problem
	parts   [][]classPart // by original class
}

// reduceProblem makes the problem as small as it has to be.
func reduceProblem(p problem) reducedProblem {
	holds := make([][]int32, len(p.Classes)) // by class: offerings
	for i, o := range p.Offerings {
		for _, k := range o.Holds {
			holds[k] = append(holds[k], int32(i))
		}
	}
	var vary []bool // by resource: not all classes need the same
	if len(p.Classes) > 0 {
		for i := range p.Classes[0].Need {
			vary = append(vary, p.offeringsVary(i))
		}
	}
	var out reducedProblem
	for _, d := range detailLevels() {
		if out = p.reducedTo(d, holds, vary); len(out.problem.Classes) <= mostRows {
			break
		}
	}
	return out
}

func (p problem) reducedTo(d detailLevel, holds [][]int32, vary []bool) reducedProblem {
	r := reducedProblem{parts: make([][]classPart, len(p.Classes))}
	r.problem = problem{Caps: p.Caps, Rounds: p.Rounds}
	x, y := p.scarcestResources()
	groups := map[[2]int32][]int32{}
	var keys [][2]int32
	largest := p.largestRoom()
	least := p.leastApart(d.apart)
	for k, c := range p.Classes {
		if x == y || c.Most > 0 && c.Count >= least || !usesOnlyScarcest(c, x, y, vary) {
			r.keepClass(p, int32(k))
			continue
		}
		key := [2]int32{c.Kind, 0}
		if d.levels {
			key[1] = groupBySize(c.Need, largest)
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], int32(k))
	}
	offerings := make([][]int32, len(p.Offerings)) // by offering: classes of the reduced problem
	for _, key := range keys {
		if list := groups[key]; len(list) <= d.few {
			for _, k := range list {
				r.keepClass(p, k)
			}
		} else {
			first := len(r.problem.Classes)
			r.shapeClasses(p, list, d.rays, x, y)
			on := make([]bool, len(p.Offerings))
			for _, k := range list {
				for _, o := range holds[k] {
					on[o] = true
				}
			}
			for o, any := range on {
				for c := first; any && c < len(r.problem.Classes); c++ {
					offerings[o] = append(offerings[o], int32(c))
				}
			}
		}
	}
	for i, o := range p.Offerings {
		for _, k := range o.Holds {
			if parts := r.parts[k]; len(parts) == 1 && parts[0].amount == 1 &&
				!r.problem.Classes[parts[0].class].Parts {
				offerings[i] = append(offerings[i], parts[0].class)
			}
		}
		r.problem.Offerings = append(r.problem.Offerings, cover.Offering{Price: o.Price, Room: o.Room,
			Holds: offerings[i], Limit: o.Limit})
	}
	return r
}

// usesOnlyScarcest reports whether the class asks for nothing but the two resources and those of which all classes need
// the same.
func usesOnlyScarcest(c cover.Class, x, y int, vary []bool) bool {
	if c.Group >= 0 || c.Need[x]+c.Need[y] <= 0 {
		return false
	}
	for i, n := range c.Need {
		if i != x && i != y && n != 0 && vary[i] {
			return false
		}
	}
	return true
}

func (p problem) offeringsVary(r int) bool {
	return slices.ContainsFunc(p.Classes,
		func(c cover.Class) bool { return c.Count >= 0 && c.Need[r] != p.Classes[0].Need[r] })
}

// leastApart returns the least pod count of a class that is among the so many largest with a limit for each node.
func (p problem) leastApart(many int) float64 {
	var counts []float64
	for _, c := range p.Classes {
		if c.Most > 0 {
			counts = append(counts, c.Count)
		}
	}
	if len(counts) <= many {
		return 0
	}
	slices.Sort(counts)
	return counts[len(counts)-1-many] + tolerance
}

// largestRoom is the most of each resource that any offering has.
func (p problem) largestRoom() []float64 {
	var out []float64
	for _, o := range p.Offerings {
		if o.Limit > 0 {
			continue
		}
		if out == nil {
			out = make([]float64, len(o.Room))
		}
		for r, x := range o.Room {
			out[r] = max(out[r], x)
		}
	}
	return out
}

// groupBySize puts pods of about the same size together: large ones do not fit on small nodes, and are dearer for it.
func groupBySize(need, largest []float64) int32 {
	part := 0.0
	for r, x := range need {
		if r < len(largest) && largest[r] > 0 {
			part = max(part, x/largest[r])
		}
	}
	const sizes, step = 3, 4 // by how many times one is smaller than the one before
	n := int32(0)
	for size := 1.0 / step; n < sizes && part < size; size /= step {
		n++
	}
	return n
}

func (r *reducedProblem) keepClass(p problem, k int32) {
	r.parts[k] = []classPart{{int32(len(r.problem.Classes)), 1}}
	r.problem.Classes = append(r.problem.Classes, p.Classes[k])
}

// shapeClasses makes shapes for the listed classes. All are as large as the largest class, so that what stands for one
// pod is never more than one of them together, and never takes more of what all need alike.
func (r *reducedProblem) shapeClasses(p problem, list []int32, most, x, y int) {
	var sumX, sumY, all float64
	for _, k := range list {
		c := p.Classes[k]
		sumX, sumY = sumX+c.Count*c.Need[x], sumY+c.Count*c.Need[y]
	}
	unitX, unitY := max(sumX, leastDivisor), max(sumY, leastDivisor)
	size := func(need []float64) float64 { return need[x]/unitX + need[y]/unitY }
	slant := func(k int32) float64 { n := p.Classes[k].Need; return n[x] / unitX / size(n) }
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b int32) int { return cmp.Or(cmp.Compare(slant(a), slant(b)), cmp.Compare(a, b)) })
	largest := 0.0
	for _, k := range sorted {
		largest = max(largest, size(p.Classes[k].Need))
		all += p.Classes[k].Count * size(p.Classes[k].Need)
	}
	slants := []float64{slant(sorted[0])}
	passed := 0.0
	for _, k := range sorted {
		passed += p.Classes[k].Count * size(p.Classes[k].Need)
		if passed >= all*float64(len(slants))/float64(most-1) && len(slants) < most-1 {
			slants = append(slants, slant(k))
		}
	}
	slants = append(slants, slant(sorted[len(sorted)-1]))
	slants = slices.CompactFunc(slants, func(a, b float64) bool { return math.Abs(b-a) < speck })
	first := int32(len(r.problem.Classes))
	for _, s := range slants {
		need := slices.Clone(p.Classes[list[0]].Need)
		need[x], need[y] = s*largest*unitX, (1-s)*largest*unitY
		r.problem.Classes = append(r.problem.Classes, cover.Class{Need: need, Group: -1, Parts: true})
	}
	for _, k := range list {
		amount, s := size(p.Classes[k].Need)/largest, slant(k)
		i := 0
		for i+2 < len(slants) && s > slants[i+1] {
			i++
		}
		if len(slants) == 1 {
			r.parts[k] = []classPart{{first, amount}}
		} else {
			t := min(1, max(0, (s-slants[i])/(slants[i+1]-slants[i])))
			r.parts[k] = []classPart{{first + int32(i), amount * (1 - t)}, {first + int32(i) + 1, amount * t}}
		}
	}
}

// reducedCounts are the counts of the reduced classes.
func (r *reducedProblem) reducedCounts(original []float64) []float64 {
	out := make([]float64, len(r.problem.Classes))
	for k, parts := range r.parts {
		for _, x := range parts {
			out[x.class] += x.amount * original[k]
		}
	}
	return out
}

// originalValues are the values of the original classes.
func (r *reducedProblem) originalValues(reduced []float64) []float64 {
	out := make([]float64, len(r.parts))
	for k, parts := range r.parts {
		for _, x := range parts {
			out[k] += x.amount * reduced[x.class]
		}
	}
	return out
}

// scarcestResources returns the two resources that most pods need, and need different amounts of; among equals those of
// which all together need the larger part of what the largest node has.
func (p problem) scarcestResources() (first, second int) {
	largest := p.largestRoom()
	type weight struct {
		resource    int
		pods, parts float64
	}
	var list []weight
	for r := range largest {
		w := weight{resource: r}
		for _, c := range p.Classes {
			if c.Need[r] > 0 {
				w.pods += c.Count
				w.parts += c.Count * c.Need[r] / max(largest[r], tolerance)
			}
		}
		if w.pods > 0 && p.offeringsVary(r) {
			list = append(list, w)
		}
	}
	if len(list) < 2 {
		return 0, 0
	}
	slices.SortStableFunc(list, func(a, b weight) int {
		return cmp.Or(cmp.Compare(b.pods, a.pods),
			cmp.Compare(b.parts, a.parts))
	})
	return min(list[0].resource, list[1].resource), max(list[0].resource, list[1].resource)
}
