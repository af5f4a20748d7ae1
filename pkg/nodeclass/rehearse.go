package nodeclass

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/bootstrap"
	"joiner.sh/pkg/nodeclaim/launch"
)

const (
	// rehearsalHolds is the time for which a verdict that nothing is wrong is good for a class that does not change.
	rehearsalHolds = 30 * time.Minute
	// refusalHolds is the time for which a refusal holds: whoever mends its cause elsewhere is to see it soon.
	refusalHolds = 2 * time.Minute
	// rolesSettle is the time for which EC2 may not know what a deployment lets the functions do.
	rolesSettle = 10 * time.Minute
	// profileSettles is the time for which EC2 may not know an instance profile that was made for the class.
	profileSettles = 10 * time.Minute
)

// Reasons of ValidationSucceeded=False that are ours, or of later versions of Karpenter than 1.14.
const (
	ReasonInstanceProfileNotFound = "InstanceProfileNotFound"
	ReasonNoInstanceType          = "NoInstanceType"

	authCheckFailed = "AuthCheckFailed" // after the name of the call
)

// DryRunVerdict is the result of a rehearsed launch of a class.
type DryRunVerdict struct {
	Reason  string `json:"reason,omitempty"`  // why nothing can be launched; empty when it can
	Message string `json:"message,omitempty"` // a sentence that goes with Reason
	Unknown bool   `json:"-"`                 // EC2 could not be asked: the condition stays as it is
	Keep    bool   `json:"-"`                 // the verdict holds for a while, unless the class changes
}

// AfterDeployment is the verdict for a stack that was deployed at that time, zero for not known: in the first minutes
// EC2 may deny what the functions may do, and nothing is known.
func (v DryRunVerdict) AfterDeployment(deployed, now time.Time) DryRunVerdict {
	if denied := strings.HasSuffix(v.Reason, authCheckFailed) || v.Reason == "Unauthorized"; denied &&
		now.Before(deployed.Add(rolesSettle)) {
		return DryRunVerdict{Unknown: true}
	}
	return v
}

// storedVerdict is a verdict in its annotation.
type storedVerdict struct {
	DryRunVerdict
	Of string    `json:"of"` // hash of the class
	At time.Time `json:"at"`
}

// RecallVerdict returns the verdict that the class carries, if it holds still: for the class as it is, given since the
// stack was deployed, zero for not known, and not for too long.
func RecallVerdict(c *awsv1.EC2NodeClass, deployed, now time.Time) (DryRunVerdict, bool) {
	var k storedVerdict
	err := json.Unmarshal([]byte(c.Annotations[v1.AnnotationDryRunResult]), &k)
	holds := rehearsalHolds
	if k.Reason != "" {
		holds = refusalHolds
	}
	if err != nil || k.Of == "" || k.Of != rehearsalHash(c) || now.Sub(k.At) >= holds || k.At.After(now) ||
		k.At.Before(deployed.Truncate(time.Second)) {
		return DryRunVerdict{}, false
	}
	return k.DryRunVerdict, true
}

// VerdictAnnotation is the annotation for the verdict.
func VerdictAnnotation(c *awsv1.EC2NodeClass, v DryRunVerdict, now time.Time) string {
	text, err := json.Marshal(storedVerdict{DryRunVerdict: v, Of: rehearsalHash(c),
		At: now.UTC().Truncate(time.Second)})
	if err != nil {
		return "" // is asked again
	}
	return string(text)
}

// rehearsalHash is of everything that a launch with the class is made of. Subnets change their order with every pod.
func rehearsalHash(c *awsv1.EC2NodeClass) string {
	ids := lists.Of(c.Status.Subnets, func(s awsv1.Subnet) string { return s.ID })
	for _, g := range c.Status.SecurityGroups {
		ids = append(ids, g.ID)
	}
	for _, a := range c.Status.AMIs {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	text, err := json.Marshal(struct {
		Spec    awsv1.EC2NodeClassSpec
		IDs     []string
		Profile string
	}{c.Spec, ids, c.Status.InstanceProfile})
	if err != nil {
		return "" // never holds
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// RehearsalClaims are the claims to rehearse launches of the class with: one for each of its pools, by their names, or
// one of no pool. A pool with a problem of its own launches nothing, and says nothing about the class.
func RehearsalClaims(c *awsv1.EC2NodeClass, pools []v1.NodePool) (out []cluster.Claim) {
	for i := range pools {
		ref := pools[i].Spec.Template.Spec.NodeClassRef
		if ref != nil && ref.Name == c.Name && len(PoolProblems(&pools[i])) == 0 {
			out = append(out, rehearsalClaim(c, &pools[i]))
		}
	}
	if len(out) == 0 {
		return []cluster.Claim{{Name: "rehearsal", UID: "rehearsal", Class: c.Name, Pool: "none"}}
	}
	slices.SortFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Pool, b.Pool) })
	return out
}

func rehearsalClaim(c *awsv1.EC2NodeClass, p *v1.NodePool) cluster.Claim {
	out := cluster.Claim{Name: "rehearsal", UID: "rehearsal", Class: c.Name, Pool: p.Name,
		Labels: maps.Clone(p.Spec.Template.Labels)}
	var reqs []requirements.Requirement
	for _, r := range p.Spec.Template.Spec.Requirements {
		if q, err := requirements.NewRequirement(r.Key, requirements.Operator(r.Operator), r.Values...); err == nil {
			reqs = append(reqs, q)
		}
	}
	out.Requirements = requirements.NewSet(reqs...)
	for _, t := range slices.Concat(p.Spec.Template.Spec.Taints, p.Spec.Template.Spec.StartupTaints) {
		out.Taints = append(out.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

// NoTypeVerdict is the verdict on a class that no instance type goes with.
func NoTypeVerdict(why string) DryRunVerdict {
	return DryRunVerdict{Reason: ReasonNoInstanceType, Message: "no instance type can be launched with this class: " +
		why}
}

// JudgeDryRun says what the error of a rehearsal means, nil included.
func JudgeDryRun(c *awsv1.EC2NodeClass, err error, now time.Time) DryRunVerdict {
	if err == nil {
		return DryRunVerdict{Keep: true}
	}
	if bad, ok := errors.AsType[*bootstrap.Error](err); ok {
		if bad.Reason == bootstrap.ReasonTooLarge {
			return DryRunVerdict{Reason: bad.Reason, Message: bad.Error()}
		}
		return DryRunVerdict{Reason: bad.Reason, Message: bad.Error() + ": change spec.userData or spec.kubelet"}
	}
	no, ok := errors.AsType[*launch.RefusedError](err)
	if !ok {
		return DryRunVerdict{Unknown: true}
	}
	reason, why := awserrors.LaunchFailureReason(no)
	switch {
	case reason == "InstanceProfileNameInvalid":
		return judgeProfile(c, now)
	case strings.Contains(no.Message, "User data is limited to"):
		return DryRunVerdict{Reason: awsv1.ReasonUserDataSizeLimitExceeded, Message: "EC2 says: " + no.Message +
			": shorten spec.userData", Keep: true}
	case no.Code == "UnauthorizedOperation":
		return DryRunVerdict{Reason: no.Call + authCheckFailed, Keep: true,
			Message: fmt.Sprintf("%s of a launch, as a dry run: %s: let the role of the functions launch with it, or change the class. EC2 says: %s", no.Call, why, no.Message)}
	case reason == awserrors.LaunchFailed:
		// that EC2 takes a dry run amiss in a way we know no word for is no reason to launch nothing
		return DryRunVerdict{}
	}
	return DryRunVerdict{Reason: reason, Message: fmt.Sprintf("%s of a launch, as a dry run: %s. EC2 says: %s", no.Call,
		why, no.Message), Keep: true}
}

// judgeProfile: a profile that was made a moment ago is not known everywhere yet, which a launch outlives by trying
// again.
func judgeProfile(c *awsv1.EC2NodeClass, now time.Time) DryRunVerdict {
	ready, _ := c.StatusConditions().Get(awsv1.ConditionInstanceProfileReady)
	if c.Spec.InstanceProfile == nil && now.Sub(ready.LastTransitionTime.Time) < profileSettles {
		return DryRunVerdict{}
	}
	return DryRunVerdict{Reason: ReasonInstanceProfileNotFound, Message: "EC2 knows no instance profile " +
		c.Status.InstanceProfile + ": create it, or change spec.instanceProfile or spec.role"}
}
