package launch

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// maxTemplates bounds the templates of one request. CreateFleet takes up to 50 launch template configurations (type
// FleetLaunchTemplateConfigRequest of the EC2 API), and refuses the whole request for one more.
const maxTemplates = 50

// mostUseful are as many of the templates as one request takes: first those whose types the claim's minValues need,
// then those with the cheapest overrides. The overrides are sorted by price.
func mostUseful(reqs requirements.Set, all []Template, cs []candidate) []Template {
	rest := slices.SortedFunc(slices.Values(all), func(a, b Template) int {
		return cmp.Or(cmp.Compare(a.Overrides[0].Price, b.Overrides[0].Price), cmp.Compare(a.Name, b.Name))
	})
	var kept []Template
	var types []candidate
	for lacking := missingValues(reqs, types); lacking > 0 && len(kept) < maxTemplates; {
		best := -1
		for i, t := range rest {
			if n := missingValues(reqs, slices.Concat(types, typesOf(t, cs))); n < lacking {
				best, lacking = i, n
			}
		}
		if best < 0 {
			break
		}
		kept, types = append(kept, rest[best]), append(types, typesOf(rest[best], cs)...)
		rest = slices.Delete(rest, best, best+1)
	}
	return append(kept, rest[:min(len(rest), maxTemplates-len(kept))]...)
}

// typesOf are the candidates that a template is for.
func typesOf(t Template, cs []candidate) []candidate {
	return lists.Where(cs, func(c candidate) bool {
		return slices.ContainsFunc(t.Overrides, func(v Override) bool { return v.Type == c.t.Name })
	})
}

// missingValues returns the number of values that the candidates lack of what the claim's minValues want.
func missingValues(reqs requirements.Set, cs []candidate) (n int) {
	for _, r := range reqs.All() {
		n += max(0, r.MinValues-countValues(r, cs))
	}
	return n
}
