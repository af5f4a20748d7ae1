package packing

// batchGroup is batches that are alike to the guide: of one class, and tied to the same places.
type batchGroup struct {
	Batches []*PodBatch
	caps    []int   // by batch: how many the rules allow on one node
	class   int32   // of the guide's prices
	all     int     // pods that are left
	left    int     // of them, as many as one node may hold
	Value   float64 // of one pod
}

// rankedItem is an item with how many pods of it come first, and what they are worth for what they take.
type rankedItem struct {
	item    int32
	first   int
	density float64
}

// GuideMemory is memory for one guide after the other. A guide that has it is of no use once the next one has it.
type GuideMemory struct {
	groups  []batchGroup
	batches []*PodBatch
	caps    []int
	all     []Candidate
	list    []*Candidate
	items   []int32
	fits    []int
	room    []float64
	ranked  []rankedItem
}

// reserveBatches makes room for groups of so many batches.
func (m *GuideMemory) reserveBatches(batches int) {
	if cap(m.groups) < batches {
		m.groups = make([]batchGroup, 0, batches)
		m.batches, m.caps = make([]*PodBatch, 0, batches), make([]int, 0, batches)
	}
	m.groups, m.batches, m.caps = m.groups[:0], m.batches[:0], m.caps[:0]
}

// reserveCandidates makes room for so many candidates of so many resources.
func (m *GuideMemory) reserveCandidates(candidates, dims int) {
	if cap(m.all) < candidates {
		m.all, m.list = make([]Candidate, candidates), make([]*Candidate, 0, candidates)
	}
	if cap(m.room) < candidates*dims {
		m.room = make([]float64, 0, candidates*dims)
	}
	m.all, m.list, m.room = m.all[:candidates], m.list[:0], m.room[:0]
	m.items, m.fits = m.items[:0], m.fits[:0]
}

// reserveItems makes room for so many more items of a candidate.
func (m *GuideMemory) reserveItems(n int) {
	if cap(m.items)-len(m.items) < n {
		size := n + 2*cap(m.items)
		m.items, m.fits = make([]int32, 0, size), make([]int, 0, size)
	}
}

// scaleRoom is the room in units of prices.
func (m *GuideMemory) scaleRoom(amounts []int64, units []float64) []float64 {
	n := len(m.room)
	m.room = appendScaled(m.room, amounts, units)
	return m.room[n:len(m.room):len(m.room)]
}

// newGroup is a group of the batch alone, of which so many pods may be on one node.
func (m *GuideMemory) newGroup(class int32, batch *PodBatch, most int) batchGroup {
	n := len(m.batches)
	m.batches, m.caps = append(m.batches, batch), append(m.caps, most)
	return batchGroup{class: class, Batches: m.batches[n : n+1 : n+1], caps: m.caps[n : n+1 : n+1]}
}
