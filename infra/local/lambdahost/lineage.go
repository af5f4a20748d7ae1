package lambdahost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mostRecursion is how often one function runs in a chain of invocations before Lambda stops it.
const mostRecursion = 16

// lineage is how often each function has run in the chain of invocations that led to one. It travels in the trace
// header of X-Ray, which the SDK takes from the invocation and sends on with each call.
type lineage map[string]int

type traceKey struct{}

// WithTrace has an invocation go on with the chain that the trace header of a call tells of.
func WithTrace(ctx context.Context, header string) context.Context {
	return context.WithValue(ctx, traceKey{}, header)
}

// readLineage reads what Lambda has written into a trace header. What is damaged is none.
func readLineage(ctx context.Context) lineage {
	header, _ := ctx.Value(traceKey{}).(string)
	out := lineage{}
	for part := range strings.SplitSeq(header, ";") {
		list, ok := strings.CutPrefix(strings.TrimSpace(part), "Lineage=")
		if !ok {
			continue
		}
		for one := range strings.SplitSeq(list, "|") {
			name, count, _ := strings.Cut(one, ":")
			if n, err := strconv.Atoi(count); err == nil && name != "" {
				out[name] = n
			}
		}
	}
	return out
}

// withRun is the chain with one more run of the function.
func (l lineage) withRun(function string) lineage {
	out := maps.Clone(l)
	if out == nil {
		out = lineage{}
	}
	out[function]++
	return out
}

// headerPart is what the trace header says of the chain.
func (l lineage) headerPart() string {
	var runs []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		runs = append(runs, fmt.Sprintf("%s:%d", name, l[name]))
	}
	return "Lineage=" + strings.Join(runs, "|")
}
