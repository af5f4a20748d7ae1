package cluster

// WithCondition returns the conditions with k in place of the one of its type. Where the status stays, so does the time
// since when it holds.
func WithCondition(all []Condition, k Condition) []Condition {
	out := make([]Condition, 0, len(all)+1)
	for _, have := range all {
		if have.Type != k.Type {
			out = append(out, have)
		} else if have.Status == k.Status {
			k.Since = have.Since
		}
	}
	return append(out, k)
}
