package podclass

import "joiner.sh/pkg/model/resources"

// Dims names the resources that anybody asks for, in the order of all vectors.
type Dims []string

// VectorOf is the amounts as a vector.
func (d Dims) VectorOf(l resources.List) []int64 {
	out := make([]int64, len(d))
	for i, name := range d {
		out[i] = l.Get(name)
	}
	return out
}

// Units are the amounts by which resources are counted in prices, so that all numbers are of about the same
// size.
func (d Dims) Units() []float64 {
	out := make([]float64, len(d))
	for i, name := range d {
		switch name {
		case resources.CPU:
			out[i] = resources.Core
		case resources.Memory, resources.Ephemeral:
			out[i] = float64(resources.GiB)
		default:
			out[i] = 1
		}
	}
	return out
}
