package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/syntax"
)

// key spells out the short names that scenario files use for the usual label keys.
func key(short string) string {
	switch short {
	case "zone":
		return "topology.kubernetes.io/zone"
	case "zone-id":
		return "topology.k8s.aws/zone-id"
	case "host":
		return "kubernetes.io/hostname"
	case "capacity":
		return "karpenter.sh/capacity-type"
	case "arch":
		return "kubernetes.io/arch"
	case "os":
		return "kubernetes.io/os"
	case "type":
		return "node.kubernetes.io/instance-type"
	case "pool":
		return "karpenter.sh/nodepool"
	case "category", "family", "cpu", "generation", "tenancy":
		return "karpenter.k8s.aws/instance-" + short
	case "partition":
		return "karpenter.k8s.aws/placement-group-partition"
	}
	return short
}

// zoneID is the id of a zone: use1-a of a.
func zoneID(zone string) string { return "use1-" + zone }

// zoneIDs are the ids of the zones.
func zoneIDs(zones []string) []string {
	out := make([]string, len(zones))
	for i, z := range zones {
		out[i] = zoneID(z)
	}
	return out
}

// requirement reads "zone In a b", optionally followed by "min=2".
func requirement(text string) (requirements.Requirement, error) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return requirements.Requirement{}, fmt.Errorf("requirement %q: want KEY OPERATOR VALUES", text)
	}
	values, least := f[2:], 0
	if n := len(values); n > 0 && strings.HasPrefix(values[n-1], "min=") {
		least, _ = strconv.Atoi(strings.TrimPrefix(values[n-1], "min="))
		values = values[:n-1]
	}
	r, err := requirements.NewRequirement(key(f[0]), requirements.Operator(f[1]), values...)
	r.MinValues = least
	return r, err
}

// parseRequirements reads requirements joined by "&".
func parseRequirements(text string) ([]requirements.Requirement, error) {
	var out []requirements.Requirement
	for part := range strings.SplitSeq(text, "&") {
		r, err := requirement(part)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// taint reads "key=value:Effect" or "key:Effect".
func taint(text string) cluster.Taint {
	var t cluster.Taint
	t.Key, t.Effect, _ = strings.Cut(text, ":")
	t.Key, t.Value, _ = strings.Cut(t.Key, "=")
	return t
}

// toleration reads what taint reads; "key:Effect" tolerates every value, "all" everything.
func toleration(text string) cluster.Toleration {
	if text == "all" {
		return cluster.Toleration{Operator: "Exists"}
	}
	t := taint(text)
	out := cluster.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect, Operator: "Equal"}
	if !strings.Contains(text, "=") {
		out.Operator = "Exists"
	}
	return out
}

// unknownLine is the error about a line that begins with none of the known words.
func unknownLine(line string, known ...string) error {
	word, _, _ := strings.Cut(line, " ")
	return fmt.Errorf("line %q: %w", line, syntax.UnknownWord("word", word, known...))
}

// selector reads "app=web tier=db"; no words select everything.
func selector(labels []string) (*cluster.Selector, error) {
	s := &cluster.Selector{}
	for _, l := range labels {
		k, v, found := strings.Cut(l, "=")
		if !found || strings.Contains(l, " ") {
			return nil, fmt.Errorf("%q is no label, want KEY=VALUE", l)
		}
		s.Requirements = append(s.Requirements, requirements.Of(k, v))
	}
	return s, nil
}

// term reads "zone app=web" or "zone ns=other app=web", with "ns=*" for every namespace.
func term(fields []string) (t cluster.AffinityTerm, err error) {
	if len(fields) == 0 {
		return t, fmt.Errorf("no topology key is given")
	}
	t.Key = key(fields[0])
	rest := fields[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "ns=") {
		if ns := strings.TrimPrefix(rest[0], "ns="); ns == "*" {
			t.NamespaceSelector = &cluster.Selector{}
		} else {
			t.Namespaces = append(t.Namespaces, ns)
		}
		rest = rest[1:]
	}
	t.Selector, err = selector(rest)
	return t, err
}

// spread reads "zone skew=1 min=3 soft ignore-affinity honor-taints app=web".
func spread(fields []string) (s cluster.Spread, err error) {
	s = cluster.Spread{Key: key(fields[0]), MaxSkew: 1}
	var labels []string
	for _, w := range fields[1:] {
		k, v, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(v)
		switch k {
		case "skew":
			s.MaxSkew = int32(n)
		case "min":
			s.MinDomains = int32(n)
		case "soft":
			s.Soft = true
		case "ignore-affinity":
			s.IgnoreNodeAffinity = true
		case "honor-taints":
			s.HonorTaints = true
		default:
			if !strings.Contains(w, "=") {
				return s, syntax.UnknownWord("word", w, "skew", "min", "soft", "ignore-affinity", "honor-taints")
			}
			labels = append(labels, w)
		}
	}
	s.Selector, err = selector(labels)
	return s, err
}
