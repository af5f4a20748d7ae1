package whatif

import (
	"fmt"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// setting is a change of a setting of the stack.
func setting(name, from, to string, change func(*cluster.Settings)) Edit {
	return Edit{Kind: KindSetting, Name: name, Field: "value", From: from, To: to,
		make: func(s *cluster.Snapshot) { change(&s.Rules) }}
}

// raised is a whole number of a setting that is raised.
func raised(name string, was int64, text func(int64) string, set func(*cluster.Settings, int64)) family {
	if was <= 0 {
		return family{}
	}
	return family{count: mostSteps, at: func(i int) Edit {
		to := was + int64(i) + 1
		return setting(name, text(was), text(to), func(r *cluster.Settings) { set(r, to) })
	}}
}

// settingFamilies are edits of settings that bound what is launched.
func settingFamilies(r cluster.Settings) (out []family) {
	plain := func(n int64) string { return strconv.FormatInt(n, 10) }
	const cent = 10_000 // millionths of a USD
	out = append(out,
		raised("maxNodes", int64(r.Ceiling.Nodes), plain,
			func(r *cluster.Settings, n int64) { r.Ceiling.Nodes = int(n) }),
		raised("maxNodesPerMinute", int64(r.Ceiling.NodesPerMinute), plain,
			func(r *cluster.Settings, n int64) { r.Ceiling.NodesPerMinute = int(n) }),
		raised("maxUSDPerHour", r.Ceiling.MillionthsUSD/cent,
			func(n int64) string { return strconv.FormatFloat(float64(n)/100, 'f', -1, 64) },
			func(r *cluster.Settings, n int64) { r.Ceiling.MillionthsUSD = n * cent }))
	if !r.RelaxMinValues {
		out = append(out, single("", setting("minValuesPolicy", "Strict", "BestEffort",
			func(r *cluster.Settings) { r.RelaxMinValues = true })))
	}
	return out
}

// refusalFamilies lift what EC2 refuses for a reason that its owner can mend: quotas and addresses.
func refusalFamilies(s cluster.Snapshot) (out []family) {
	var codes []string
	for _, m := range s.SoldOut {
		if awserrors.IsQuota(m.Why) && !slices.Contains(codes, m.Why) {
			codes = append(codes, m.Why)
		}
	}
	slices.Sort(codes)
	for _, code := range codes {
		marks := 0
		for _, m := range s.SoldOut {
			if m.Why == code {
				marks++
			}
		}
		out = append(out, single("", Edit{Kind: KindEC2, Name: code, Field: "refusals", From: fmt.Sprint(marks), To: "0",
			make: func(s *cluster.Snapshot) {
				s.SoldOut = slices.DeleteFunc(slices.Clone(s.SoldOut),
					func(m instancetypes.UnavailableOffering) bool { return m.Why == code })
			}}))
	}
	return out
}
