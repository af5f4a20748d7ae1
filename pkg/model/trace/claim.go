package trace

import (
	"crypto/sha256"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// Names of the spans of a NodeClaim's way into service. They follow on each other: pods wait, the instance is launched,
// it boots until its node is there, the node is registered and then initialized. Kubernetes keeps times in whole
// seconds, so that one may begin up to a second before the other ends.
const (
	ClaimWay   = "NodeClaim" // all of it
	PodsWait   = "pods wait"
	LaunchSpan = "launch"
	Boot       = "boot"
	Register   = "registration"
	Initialize = "initialization"
)

// OfClaim is the place of the span of a NodeClaim's whole way. It follows from the claim's UID, so that functions that
// know nothing of each other write into the same trace, and a span that is written twice is the same span. A stopped
// instance that is started goes another way, in another trace.
func OfClaim(c cluster.Claim) Place {
	sum := sha256.Sum256([]byte(c.UID + c.Annotations[v1.AnnotationStartRequested]))
	return Place{ID(sum[:16]), SpanID(sum[16:24])}
}

// begun is when the claim's way began.
func begun(c cluster.Claim) time.Time {
	t, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationStartRequested])
	if err != nil {
		return c.Created
	}
	return t
}

// FindPod is the pod of that namespace and name, and whether there is one.
type FindPod func(key string) (cluster.Pod, bool)

// within is a span of the claim's way. It links to the pass that saw its end.
func within(c cluster.Claim, name string, start, end time.Time, pass Place) Span {
	whole := OfClaim(c)
	sum := sha256.Sum256(append(whole.Span[:], name...))
	return Span{Place: Place{whole.Trace, SpanID(sum[:8])}, Parent: whole.Span, Name: name, Start: start,
		End: latest(start, end), Attributes: aboutClaim(c), Links: []Place{pass}}
}

func aboutClaim(c cluster.Claim) []Attribute {
	out := []Attribute{NodeClaims(c.Name), Text(KeyNodePool, c.Pool)}
	if c.NodeName != "" {
		out = append(out, Text(KeyNode, c.NodeName))
	}
	return out
}

// Launch is what is known of the claim's way when its instance is launched.
func Launch(c cluster.Claim, pod FindPod, now time.Time, pass Place) []Span {
	start := begun(c)
	out := []Span{within(c, LaunchSpan, start, now, pass)}
	if since := waitingSince(c, pod); since.Before(start) {
		out = append(out, within(c, PodsWait, since, start, pass))
	}
	return out
}

// Seen is when something is seen, and in which pass.
type Seen struct {
	At time.Time
	In Place
}

// IntoService is what is known of the claim's way when these of its conditions are seen to become true. The node is the
// claim's, nil where it is not known.
func IntoService(c cluster.Claim, n *cluster.Node, pod FindPod, becomes []cluster.Condition, seen Seen) (out []Span) {
	now, pass := seen.At, seen.In
	registered := c.Condition(v1.ConditionRegistered)
	start := latest(registered.Since, begun(c))
	for _, k := range becomes {
		switch {
		case k.Status != "True" || c.Is(k.Type):
		case k.Type == v1.ConditionRegistered:
			launched := latest(c.Condition(v1.ConditionLaunched).Since, begun(c))
			if start = launched; n != nil && n.Created.After(launched) {
				start = n.Created
				out = append(out, within(c, Boot, launched, start, pass))
			}
			out = append(out, within(c, Register, start, now, pass))
			start = now
		case k.Type == v1.ConditionInitialized:
			out = append(out, within(c, Initialize, start, now, pass),
				Span{Place: OfClaim(c), Name: ClaimWay, Start: waitingSince(c, pod), End: now,
					Attributes: aboutClaim(c)})
		}
	}
	return out
}

// waitingSince is when the oldest of the pods was made that the claim was made for; when the claim was, if that is not
// known.
func waitingSince(c cluster.Claim, pod FindPod) time.Time {
	since := begun(c)
	for name := range strings.SplitSeq(c.Annotations[v1.AnnotationNominatedPods], ",") {
		if p, ok := pod(name); ok && !p.Virtual && p.Created.Before(since) {
			since = p.Created
		}
	}
	return since
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
