package cover

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A fill that begins where the one before it ended, at other values, is as good as one that begins with nothing. That
// it is the best its own bound proves: what the node holds is worth as much.
func TestFillsThatGoOnAreTheBest(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		dims, items := 1+r.IntN(3), 1+r.IntN(6)
		var caps []float64
		for range r.IntN(2) {
			caps = append(caps, float64(1+r.IntN(3)))
		}
		s := NewFiller(dims, caps)
		var list []int32
		var most, room []float64
		for i := range items {
			list, most = append(list, int32(i)), append(most, float64(1+r.IntN(4)))
			s.Group = append(s.Group, int32(r.IntN(len(caps)+1)-1))
			for range dims {
				s.Need = append(s.Need, float64(r.IntN(4)))
			}
		}
		for range dims {
			room = append(room, float64(1+r.IntN(8)))
		}
		s.Value = make([]float64, items)
		var last Basis
		for call := range 6 {
			for i := range s.Value {
				s.Value[i] = float64(r.IntN(6))
			}
			upper, worth := s.Fill(list, most, room, &last), 0.0
			for i, n := range s.N {
				worth += n * s.Value[i]
			}
			if math.Abs(upper-worth) > 1e-6 {
				t.Fatalf("seed %d, call %d: %v are worth %v, and no fill more than %v", seed, call, s.N, worth, upper)
			}
		}
	}
}
