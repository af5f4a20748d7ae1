package timeseries

import (
	"encoding/json"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// commandReasons are the reasons of the disruptions under way, in lower case, by the ID of the command.
func commandReasons(claims []cluster.Claim) map[string]string {
	out := map[string]string{}
	for _, c := range claims {
		var k struct{ ID, Reason string }
		if json.Unmarshal([]byte(c.Annotations[v1.AnnotationDisruptionCommand]), &k) == nil && k.ID != "" {
			out[k.ID] = strings.ToLower(k.Reason)
		}
	}
	return out
}

// noticeOf returns what EC2 announced about the NodeClaim's instance, as far as that stands on the NodeClaim; empty for
// nothing.
func noticeOf(c cluster.Claim) string {
	if reason := c.Annotations[v1.AnnotationDeletionReason]; reason != "" {
		return reason
	}
	cause, _, _ := strings.Cut(c.Annotations[v1.AnnotationReplaceRequested], " ")
	return cause
}

// refusalCode is the error code in why an offering is not to be had.
func refusalCode(why string) string {
	code, _, _ := strings.Cut(why, ":")
	code, _, _ = strings.Cut(code, " ")
	return code
}

// snakePolicy is a consolidation policy as Karpenter's metrics have it.
func snakePolicy(policy string) string {
	var b strings.Builder
	for i, r := range policy {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// isLaunchFailure tells error codes of EC2 from what marks an offering besides: notices and zonal shifts.
func isLaunchFailure(reason string) bool {
	return reason != "" && reason != "SpotInterrupted" && reason != "CapacityReservationInstanceInterrupted"
}
