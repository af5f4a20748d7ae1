package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	v1 "joiner.sh/pkg/api/v1"
)

// dice makes parts of a NodePool at random, as YAML.
type dice struct{ *rand.Rand }

func roll(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0))} }

func (d dice) coin() bool { return d.IntN(2) == 0 }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// some are up to most of the values, each once, quoted.
func (d dice) some(most int, of ...string) string {
	d.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	var out []string
	for _, v := range of[:min(d.IntN(most+1), len(of))] {
		out = append(out, fmt.Sprintf("%q", v))
	}
	return strings.Join(out, ", ")
}

// read gives one text to the types of both.
func read(t *testing.T, text string) (*karpv1.NodePool, *v1.NodePool) {
	theirs, ours := &karpv1.NodePool{}, &v1.NodePool{}
	for _, into := range []any{theirs, ours} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	return theirs, ours
}
