package translate

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/resources"
)

// What is written is what a Go client writes that has read it, or the API server takes that client's update for a
// change of the spec.
func TestQuantitiesAreCanonical(t *testing.T) {
	for _, n := range awkwardAmounts() {
		in := resources.List{CPU: n, Memory: n, Ephemeral: n, Pods: n,
			Extended: []resources.Extended{{Name: "hugepages-2Mi", Count: n}, {Name: "nvidia.com/gpu", Count: n}}}
		written, err := json.Marshal(Quantities(in))
		if err != nil {
			t.Fatal(err)
		}
		var read corev1.ResourceList
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		again, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(written) {
			t.Fatalf("%d is written as %s, and by who has read it as %s", n, written, again)
		}
		if got := Amounts(read); !reflect.DeepEqual(got, in) {
			t.Fatalf("%s is read as %s", in, got)
		}
	}
}

// awkwardAmounts are numbers around every power of 10 and of 2, their multiples, sums of both, and some by chance.
func awkwardAmounts() (out []int64) {
	add := func(n int64) {
		for _, m := range []int64{n - 1, n, n + 1} {
			if m > 0 && m <= mostAmount {
				out = append(out, m)
			}
		}
	}
	for ten := int64(1); ten <= mostAmount; ten *= 10 {
		for two := int64(1); two <= mostAmount; two *= 2 {
			add(ten + two)
			if ten <= mostAmount/two {
				add(ten * two)
			}
		}
	}
	chance := rand.New(rand.NewPCG(18, 4))
	for range 5000 {
		add(chance.Int64N(mostAmount) >> chance.IntN(52))
	}
	return out
}

func TestQuantitiesReadWell(t *testing.T) {
	for n, want := range map[int64]string{100_000_000: "100M", 128 << 20: "128Mi", 1536 << 20: "1536Mi", 3 << 30: "3Gi", 1000: "1k", 1024: "1Ki", 1023: "1023", 268_435_457: "268435457"} {
		list := Quantities(resources.List{Memory: n})
		if q := list[corev1.ResourceMemory]; q.String() != want {
			t.Errorf("%d bytes are written as %s, want %s", n, q.String(), want)
		}
	}
}
