package interrupt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"joiner/pkg/cluster"
	"joiner/pkg/interrupt"
)

// TestScenarios plays the files in testdata. Each line of "claims" is "NAME id=i-1 [deleting] [type=..] [zone=..] [capacity=..]";
// "notice ID" prints what is made of a spot interruption warning.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var claims []cluster.Claim
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "claims":
				claims = nil
				for l := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
					claims = append(claims, claim(t, l))
				}
				return ""
			case "notice":
				n := interrupt.Notice{Reason: "SpotInterrupted"}
				if len(d.CmdArgs) > 0 {
					n.Instance = d.CmdArgs[0].Key
				}
				out := text(interrupt.Spot(n, claims))
				slices.Reverse(claims)
				if again := text(interrupt.Spot(n, claims)); again != out {
					t.Errorf("%s: with the claims in another order: %s", d.Pos, again)
				}
				return out
			}
			t.Fatalf("%s: unknown word %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func claim(t *testing.T, line string) cluster.Claim {
	f := strings.Fields(line)
	c := cluster.Claim{Name: f[0], Labels: map[string]string{}}
	for _, w := range f[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "id":
			c.ProviderID = "aws:///us-west-2a/" + v
		case "deleting":
			c.Deleting = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		case "type":
			c.Labels["node.kubernetes.io/instance-type"] = v
		case "zone":
			c.Labels["topology.kubernetes.io/zone"] = v
		case "capacity":
			c.Labels["karpenter.sh/capacity-type"] = v
		default:
			t.Fatalf("claim %s: unknown word %q", f[0], w)
		}
	}
	return c
}

func text(o interrupt.Outcome) string {
	if !o.Found {
		return "not ours\n"
	}
	out := "claim " + o.Claim.Name
	if o.Condemn {
		out += ", condemn"
	}
	for _, m := range o.SoldOut {
		out += fmt.Sprintf(", sold out: %s (%s)", m.Offer, m.Why)
	}
	return out + "\n"
}
