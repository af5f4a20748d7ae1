package awsemulator

import "joiner.sh/pkg/testing/requestlimits"

// throttleFaults are what plays limits.
func throttleFaults(limits []requestlimits.Limit) (out []Fault) {
	for _, l := range limits {
		out = append(out, Fault{Service: l.Service, Action: l.Action, Kind: Throttle, Burst: l.Burst,
			PerSecond: l.PerSecond, Each: l.Each})
	}
	return out
}
