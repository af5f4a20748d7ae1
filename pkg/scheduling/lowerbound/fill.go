package lowerbound

import "math"

// tolerance below which a gain, relative to values of about 1, is taken for rounding.
const tolerance = 1e-9

// mostPivots bounds the steps of one fill. A fill that is cut short still gives a valid upper bound.
const mostPivots = 60

// KnapsackSolver finds the best fill of one node, fractions allowed: a linear program with one row for each resource
// and each group, solved by the simplex method with bounded variables. Rows are few, so its inverse is small and made
// anew for each call.
type KnapsackSolver struct {
	Value []float64 // by item: what one is worth
	Need  []float64 // by item and resource: Need[i*dims+r]
	Group []int32   // by item: its group, -1 for none
	Caps  []float64 // by group: how many of its items one node may hold

	// What the last call of Fill found.
	N     []float64 // by position in the list of items: how many the best fill holds
	Price []float64 // of one unit of each resource, then of one place in each group

	dims    int
	inverse []float64
	has     []float64 // by row: how much of its basic variable
	step    []float64
	basic   []bool
	column  []float64 // of what enters, by row
	matrix  []float64 // while its inverse is made
}

// Basis remembers where the fill of a node ended, so that the next one with other values starts there.
type Basis struct {
	rows  []int32 // by row: the position of its basic item, or -1 - row for a slack
	upper []bool  // by position: the item is at its most
}

// NewFiller returns a filler for items with amounts of dims resources and the given groups.
func NewFiller(dims int, caps []float64) *KnapsackSolver {
	rows := dims + len(caps)
	return &KnapsackSolver{
		Caps: caps, dims: dims, Price: make([]float64, rows), inverse: make([]float64, rows*rows),
		has: make([]float64, rows), step: make([]float64, rows), column: make([]float64, rows),
		matrix: make([]float64, rows*rows),
	}
}

// Fill finds the best fill of room from the listed items, of which most[i] are to be had of items[i]. It returns an
// upper bound of its value that holds even where rounding or a step limit kept it from the best.
func (f *KnapsackSolver) Fill(items []int32, most, room []float64, b *Basis) float64 {
	f.startBasis(items, b)
	if !f.invertBasis(items, b) {
		*b = Basis{}
		f.startBasis(items, b)
		f.invertBasis(items, b)
	}
	f.basicAmounts(items, most, room, b)
	for r, x := range f.has {
		if p := b.rows[r]; x < -1e-7 || p >= 0 && x > most[p]+1e-7 { // there is less now: begin with nothing
			*b = Basis{}
			f.startBasis(items, b)
			f.invertBasis(items, b)
			f.basicAmounts(items, most, room, b)
			break
		}
	}
	for range mostPivots {
		if !f.pivotStep(items, most, room, b) {
			break
		}
	}
	for i := range items {
		f.N[i] = 0
		if b.upper[i] {
			f.N[i] = most[i]
		}
	}
	for r, p := range b.rows {
		if p >= 0 {
			f.N[p] = max(0, min(f.has[r], most[p]))
		}
	}
	return f.dualBound(items, most, room)
}

func (f *KnapsackSolver) startBasis(items []int32, b *Basis) {
	rows := len(f.Price)
	if len(b.rows) != rows || len(b.upper) != len(items) {
		b.rows, b.upper = make([]int32, rows), make([]bool, len(items))
		for r := range b.rows {
			b.rows[r] = int32(-1 - r)
		}
	}
	if cap(f.N) < len(items) {
		f.N, f.basic = make([]float64, len(items)), make([]bool, len(items))
	}
	f.N, f.basic = f.N[:len(items)], f.basic[:len(items)]
	clear(f.basic)
	for _, p := range b.rows {
		if p >= 0 {
			f.basic[p] = true
		}
	}
}

// itemColumn returns the amount of row r that one item takes.
func (f *KnapsackSolver) itemColumn(item int32, r int) float64 {
	if r < f.dims {
		return f.Need[int(item)*f.dims+r]
	}
	if int(f.Group[item]) == r-f.dims {
		return 1
	}
	return 0
}

// invertBasis makes the inverse of the basis by Gauss-Jordan elimination with row exchange; false when there is none.
func (f *KnapsackSolver) invertBasis(items []int32, b *Basis) bool {
	n := len(b.rows)
	clear(f.inverse)
	all := true
	for r, p := range b.rows {
		f.inverse[r*n+r] = 1
		all = all && p == int32(-1-r)
	}
	if all {
		return true
	}
	m := f.matrix
	clear(m)
	for c, p := range b.rows {
		for r := range n {
			if p >= 0 {
				m[r*n+c] = f.itemColumn(items[p], r)
			} else if int(-1-p) == r {
				m[r*n+c] = 1
			}
		}
	}
	for c := range n {
		best := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r*n+c]) > math.Abs(m[best*n+c]) {
				best = r
			}
		}
		d := m[best*n+c]
		if math.Abs(d) < 1e-11 {
			return false
		}
		for k := range n {
			m[best*n+k], m[c*n+k] = m[c*n+k], m[best*n+k]/d
			f.inverse[best*n+k], f.inverse[c*n+k] = f.inverse[c*n+k], f.inverse[best*n+k]/d
		}
		for r := range n {
			if x := m[r*n+c]; r != c && x != 0 {
				for k := range n {
					m[r*n+k] -= x * m[c*n+k]
					f.inverse[r*n+k] -= x * f.inverse[c*n+k]
				}
			}
		}
	}
	return true
}

func (f *KnapsackSolver) rowCapacity(r int, room []float64) float64 {
	if r < f.dims {
		return room[r]
	}
	return f.Caps[r-f.dims]
}

// basicAmounts computes how much of each basic variable there is.
func (f *KnapsackSolver) basicAmounts(items []int32, most, room []float64, b *Basis) {
	n := len(b.rows)
	for r := range n {
		f.step[r] = f.rowCapacity(r, room)
	}
	for i, up := range b.upper {
		if !up {
			continue
		}
		item := int(items[i])
		for r, x := range f.Need[item*f.dims : (item+1)*f.dims] {
			f.step[r] -= most[i] * x
		}
		if g := f.Group[item]; g >= 0 {
			f.step[f.dims+int(g)] -= most[i]
		}
	}
	for r := range n {
		f.has[r] = 0
		for k := range n {
			f.has[r] += f.inverse[r*n+k] * f.step[k]
		}
	}
}

// pivotStep improves the fill by one step; false when it is the best.
func (f *KnapsackSolver) pivotStep(items []int32, most, room []float64, b *Basis) bool {
	n := len(b.rows)
	clear(f.Price)
	for r, p := range b.rows {
		if p < 0 {
			continue
		}
		v := f.Value[items[p]]
		for k := range n {
			f.Price[k] += v * f.inverse[r*n+k]
		}
	}
	enter, sign := f.chooseEntering(items, most, b)
	if sign == 0 {
		return false
	}
	for k := range n {
		f.column[k] = 0
		if enter >= 0 {
			f.column[k] = f.itemColumn(items[enter], k)
		} else if -1-enter == k {
			f.column[k] = 1
		}
	}
	for r := range n {
		f.step[r] = 0
		for k, x := range f.column {
			if x != 0 {
				f.step[r] += f.inverse[r*n+k] * x
			}
		}
	}
	length, leave, toUpper := f.ratioTest(enter, sign, most, b)
	if leave < 0 && enter < 0 {
		return false // cannot be: slacks are bounded by the room
	}
	for r := range n {
		f.has[r] -= sign * length * f.step[r]
	}
	if leave < 0 { // it goes from one of its bounds to the other
		b.upper[enter] = sign > 0
		return true
	}
	f.exchangeBasis(b, enter, leave, toUpper)
	f.has[leave] = length
	if sign < 0 {
		f.has[leave] = most[enter] - length
	}
	return true
}

// ratioTest tells how far what enters can go until something is used up or at its most: the row of that, or -1 when it
// is what enters itself.
func (f *KnapsackSolver) ratioTest(enter int, sign float64, most []float64, b *Basis) (length float64, leave int,
	toUpper bool) {
	length, leave = math.Inf(1), -1
	if enter >= 0 {
		length = most[enter]
	}
	for r, p := range b.rows {
		switch w := sign * f.step[r]; {
		case w > tolerance:
			if t := max(0, f.has[r]) / w; t < length {
				length, leave, toUpper = t, r, false
			}
		case w < -tolerance && p >= 0:
			if t := max(0, most[p]-f.has[r]) / -w; t < length {
				length, leave, toUpper = t, r, true
			}
		}
	}
	return length, leave, toUpper
}

// chooseEntering chooses what comes into the basis: the item or slack with the greatest gain. sign is -1 for an item
// that is at its most and should become fewer, 0 when nothing gains.
func (f *KnapsackSolver) chooseEntering(items []int32, most []float64, b *Basis) (enter int, sign float64) {
	best := tolerance
	for i, item := range items {
		if f.basic[i] || most[i] <= 0 {
			continue
		}
		d := f.reducedGain(item)
		switch {
		case !b.upper[i] && d > best:
			enter, sign, best = i, 1, d
		case b.upper[i] && -d > best:
			enter, sign, best = i, -1, -d
		}
	}
	for r, p := range f.Price {
		if -p > best {
			enter, sign, best = -1-r, 1, -p
		}
	}
	return enter, sign
}

// reducedGain is what one of the item is worth beyond the price of what it takes.
func (f *KnapsackSolver) reducedGain(item int32) float64 {
	d := f.Value[item]
	need := f.Need[int(item)*f.dims:][:f.dims]
	price := f.Price[:len(need)]
	for r, x := range need {
		d -= price[r] * x
	}
	if g := f.Group[item]; g >= 0 {
		d -= f.Price[f.dims+int(g)]
	}
	return d
}

func (f *KnapsackSolver) exchangeBasis(b *Basis, enter, leave int, toUpper bool) {
	n := len(b.rows)
	if p := b.rows[leave]; p >= 0 {
		f.basic[p] = false
		b.upper[p] = toUpper
	}
	b.rows[leave] = int32(enter)
	if enter >= 0 {
		f.basic[enter] = true
		b.upper[enter] = false
	}
	d := f.step[leave]
	row := f.inverse[leave*n : leave*n+n]
	for k := range row {
		row[k] /= d
	}
	for r := range n {
		if x := f.step[r]; r != leave && x != 0 {
			for k := range row {
				f.inverse[r*n+k] -= x * row[k]
			}
		}
	}
}

// UpperBound is an upper bound of the value of any fill of room, as Fill returns it, that these prices of resources and
// places prove.
func (f *KnapsackSolver) UpperBound(items []int32, most, room, prices []float64) float64 {
	copy(f.Price, prices)
	return f.dualBound(items, most, room)
}

// dualBound is what the prices of resources and places prove: no fill is worth more than all that the node has at these
// prices, and what some items are worth beyond the price of what they take.
func (f *KnapsackSolver) dualBound(items []int32, most, room []float64) float64 {
	sum := 0.0
	for r := range f.Price {
		f.Price[r] = max(0, f.Price[r])
		sum += f.Price[r] * f.rowCapacity(r, room)
	}
	for i, item := range items {
		if d := f.reducedGain(item); d > 0 {
			sum += d * most[i]
		}
	}
	return sum
}
