package rules

import (
	"strings"
	"testing"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	v1 "joiner.sh/pkg/api/v1"
)

func (d dice) pairs() string {
	var all []string
	for _, k := range []string{"team", "example.com/a", "b"} {
		if d.coin() {
			all = append(all, k+": "+d.one("x", "y", "''"))
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (d dice) taints() string {
	var all []string
	for range d.IntN(4) {
		taint := "key: " + d.one("a", "b") + ", effect: " + d.one("NoSchedule", "NoExecute", "PreferNoSchedule")
		if d.coin() {
			taint += ", value: " + d.one("x", "''")
		}
		all = append(all, "{"+taint+"}")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// template is a NodePool of which each field is there or not, whether the hash sees it or not.
func (d dice) template() string {
	var meta, spec, pool []string
	maybe := func(to *[]string, text string) {
		if d.coin() {
			*to = append(*to, text)
		}
	}
	maybe(&meta, "labels: "+d.pairs())
	maybe(&meta, "annotations: "+d.pairs())
	maybe(&spec, "taints: "+d.taints())
	maybe(&spec, "startupTaints: "+d.taints())
	maybe(&spec, "expireAfter: "+d.one("Never", "720h", "30m", "1h0m", "0s"))
	maybe(&spec, "terminationGracePeriod: "+d.one("30s", "0s", "48h"))
	maybe(&spec, "requirements: [{key: a, operator: Exists}]")
	spec = append(spec, "nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: "+d.one("default", "other")+"}")
	maybe(&pool, "weight: 5")
	maybe(&pool, "limits: {cpu: 5}")
	pool = append(pool, "template: {metadata: {"+strings.Join(meta, ", ")+"}, spec: {"+strings.Join(spec, ", ")+"}}")
	return "spec: {" + strings.Join(pool, ", ") + "}"
}

// Every pool has Karpenter's drift hash, so that nodes stay when a cluster moves from one to the other.
func TestEveryPoolHasKarpentersHash(t *testing.T) {
	if v1.NodePoolHashVersion != karpv1.NodePoolHashVersion {
		t.Errorf("version %s, Karpenter's is %s", v1.NodePoolHashVersion, karpv1.NodePoolHashVersion)
	}
	seen := map[string]bool{}
	for seed := range uint64(20_000) {
		text := roll(seed).template()
		theirs, ours := read(t, text)
		want, got := theirs.Hash(), ours.Hash()
		if want != got {
			t.Fatalf("seed %d: hash %s, Karpenter's is %s, of\n%s", seed, got, want, text)
		}
		seen[got] = true
	}
	t.Logf("%d different hashes", len(seen))
	if len(seen) < 10_000 {
		t.Errorf("only %d different hashes", len(seen))
	}
}
