package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func gpu(n int64) List { return List{}.With("nvidia.com/gpu", n) }

func TestArithmetic(t *testing.T) {
	a := List{CPU: 1500, Memory: 512 * MiB, Pods: 1}.With("nvidia.com/gpu", 2).With("efa", 1)
	b := List{CPU: 500, Memory: 1024 * MiB}.With("nvidia.com/gpu", 3)
	for _, c := range []struct {
		what string
		got  List
		want string
	}{
		{"add", a.Add(b), "cpu=2 memory=1536Mi pods=1 efa=1 nvidia.com/gpu=5"},
		{"sub", a.Sub(b), "cpu=1 memory=-512Mi pods=1 efa=1 nvidia.com/gpu=-1"},
		{"max", a.Max(b), "cpu=1500m memory=1024Mi pods=1 efa=1 nvidia.com/gpu=3"},
		{"min", a.Min(b), "cpu=500m memory=512Mi nvidia.com/gpu=2"},
		{"times", a.Times(3), "cpu=4500m memory=1536Mi pods=3 efa=3 nvidia.com/gpu=6"},
		{"times 0", a.Times(0), ""},
		{"gone", a.With("nvidia.com/gpu", 0).With("cpu", 0), "memory=512Mi pods=1 efa=1"},
		{"changed", a.With("efa", 4), "cpu=1500m memory=512Mi pods=1 efa=4 nvidia.com/gpu=2"},
		{"cancelled", gpu(2).Sub(gpu(2)), ""},
		{"untouched", a, "cpu=1500m memory=512Mi pods=1 efa=1 nvidia.com/gpu=2"},
		{"odd bytes", List{Memory: 1000, Ephemeral: 3 * MiB}, "memory=1000 ephemeral-storage=3Mi"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
	if !gpu(2).Sub(gpu(2)).IsZero() || a.IsZero() || !a.Sub(b).Negative() || a.Negative() || !gpu(1).Sub(gpu(2)).Negative() {
		t.Error("zero or negative told wrongly")
	}
}

func TestFits(t *testing.T) {
	room := List{CPU: 1000, Memory: 10, Ephemeral: 10, Pods: 1}.With("nvidia.com/gpu", 1)
	for _, c := range []struct {
		need  List
		short []string
	}{
		{List{}, nil},
		{room, nil},
		{List{CPU: 1001}, []string{"cpu"}},
		{List{Memory: 11, Ephemeral: 11, Pods: 2}, []string{"memory", "ephemeral-storage", "pods"}},
		{gpu(2), []string{"nvidia.com/gpu"}},
		{List{}.With("efa", 1), []string{"efa"}},
	} {
		if got := c.need.Short(room); !cmp.Equal(got, c.short) {
			t.Errorf("%s is short of %v, want %v", c.need, got, c.short)
		}
		if got := c.need.FitsIn(room); got != (c.short == nil) {
			t.Errorf("%s fits: %t", c.need, got)
		}
	}
}

// Sums and products of what strangers ask for end at the largest amount: one that wrapped around would be room.
func TestSumsEndAtTheLargestAmount(t *testing.T) {
	pod := List{CPU: 1 << 52, Memory: 1 << 52, Pods: 1, Extended: []Extended{{"example.com/gpu", 1 << 52}}}
	used := List{}
	for range 5000 { // 2,048 of them are more than 63 bits
		used = used.Add(pod)
	}
	room := List{CPU: 4000, Memory: 8 << 30, Pods: 110, Extended: []Extended{{"example.com/gpu", 4}}}
	left := room.Sub(used)
	for _, name := range []string{CPU, Memory, "example.com/gpu"} {
		if used.Get(name) != mostAmount || left.Get(name) >= 0 || pod.Times(5000).Get(name) != mostAmount || pod.Times(-5000).Get(name) != -mostAmount {
			t.Errorf("%s: used %d, left %d, product %d", name, used.Get(name), left.Get(name), pod.Times(5000).Get(name))
		}
	}
	if pod.FitsIn(left) || used.Get(Pods) != 5000 || left.Add(used).Get(Pods) != 110 {
		t.Errorf("another one fits into %v; used %v", left, used)
	}
	if got := (List{CPU: -3}).Times(7).Get(CPU); got != -21 {
		t.Errorf("-3 times 7 is %d", got)
	}
}
