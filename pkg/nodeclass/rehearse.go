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

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/awscode"
	"joiner/pkg/bootstrap"
	"joiner/pkg/cluster"
	"joiner/pkg/launch"
	"joiner/pkg/require"
)

// AnnotationRehearsed holds, as JSON, the last verdict of a rehearsed launch with the class, when it was given, and a hash of the class
// then. So it costs no call each time, whichever process asks.
const AnnotationRehearsed = "joiner.sh/rehearsed"

const (
	// rehearsalHolds is how long a verdict is good for a class that does not change (spec aws.md §1.7).
	rehearsalHolds = 30 * time.Minute
	// profileSettles is how long EC2 may not know an instance profile that was made for the class.
	profileSettles = 10 * time.Minute
)

// Reasons of ValidationSucceeded=False that are ours, or of later versions of Karpenter than 1.14.
const (
	ReasonInstanceProfileNotFound = "InstanceProfileNotFound"
	ReasonNoInstanceType          = "NoInstanceType"
)

// Verdict is what a rehearsed launch says about a class.
type Verdict struct {
	Reason  string `json:"reason,omitempty"` // why nothing can be launched; empty when it can
	Message string `json:"message,omitempty"`
	Unknown bool   `json:"-"` // EC2 could not be asked: the condition stays as it is
	Keep    bool   `json:"-"` // the verdict holds until the class changes, or for half an hour
}

// kept is a verdict in its annotation.
type kept struct {
	Verdict
	Of string    `json:"of"` // hash of the class
	At time.Time `json:"at"`
}

// Recall returns the verdict that the class carries, if it holds still: for the class as it is, and not for too long.
func Recall(c *awsv1.EC2NodeClass, now time.Time) (Verdict, bool) {
	var k kept
	err := json.Unmarshal([]byte(c.Annotations[AnnotationRehearsed]), &k)
	if err != nil || k.Of == "" || k.Of != rehearsalHash(c) || now.Sub(k.At) >= rehearsalHolds || k.At.After(now) {
		return Verdict{}, false
	}
	return k.Verdict, true
}

// Remember is the annotation for the verdict.
func Remember(c *awsv1.EC2NodeClass, v Verdict, now time.Time) string {
	text, err := json.Marshal(kept{Verdict: v, Of: rehearsalHash(c), At: now.UTC().Truncate(time.Second)})
	if err != nil {
		return "" // is asked again
	}
	return string(text)
}

// rehearsalHash is of everything that a launch with the class is made of. Subnets change their order with every pod.
func rehearsalHash(c *awsv1.EC2NodeClass) string {
	var ids []string
	for _, s := range c.Status.Subnets {
		ids = append(ids, s.ID)
	}
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

// RehearsalClaim is the claim to rehearse a launch of the class with: that of its first pool by name, or of no pool.
func RehearsalClaim(c *awsv1.EC2NodeClass, pools []v1.NodePool) cluster.Claim {
	out := cluster.Claim{Name: "rehearsal", UID: "rehearsal", Class: c.Name, Pool: "none"}
	first := -1
	for i := range pools {
		ref := pools[i].Spec.Template.Spec.NodeClassRef
		if ref != nil && ref.Name == c.Name && (first < 0 || pools[i].Name < pools[first].Name) {
			first = i
		}
	}
	if first < 0 {
		return out
	}
	p := &pools[first]
	out.Pool, out.Labels = p.Name, maps.Clone(p.Spec.Template.Labels)
	var reqs []require.Requirement
	for _, r := range p.Spec.Template.Spec.Requirements {
		if q, err := require.New(r.Key, require.Operator(r.Operator), r.Values...); err == nil {
			reqs = append(reqs, q)
		}
	}
	out.Requirements = require.NewSet(reqs...)
	for _, t := range slices.Concat(p.Spec.Template.Spec.Taints, p.Spec.Template.Spec.StartupTaints) {
		out.Taints = append(out.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

// Useless is the verdict on a class that no instance type goes with.
func Useless(why string) Verdict {
	return Verdict{Reason: ReasonNoInstanceType, Message: "no instance type can be launched with this class: " + why}
}

// Judge says what the error of a rehearsal means, nil included (spec aws.md §1.7).
func Judge(c *awsv1.EC2NodeClass, err error, now time.Time) Verdict {
	if err == nil {
		return Verdict{Keep: true}
	}
	if bad, ok := errors.AsType[*bootstrap.Error](err); ok {
		if bad.Reason == bootstrap.ReasonTooLarge {
			return Verdict{Reason: bad.Reason, Message: bad.Error()}
		}
		return Verdict{Reason: bad.Reason, Message: bad.Error() + ": change spec.userData or spec.kubelet"}
	}
	no, ok := errors.AsType[*launch.RefusedError](err)
	if !ok {
		return Verdict{Unknown: true}
	}
	reason, why := awscode.Reason(no)
	switch {
	case reason == "InstanceProfileNameInvalid":
		return judgeProfile(c, now)
	case strings.Contains(no.Message, "User data is limited to"):
		return Verdict{Reason: awsv1.ReasonUserDataSizeLimitExceeded, Message: "EC2 says: " + no.Message + ": shorten spec.userData", Keep: true}
	case no.Code == "UnauthorizedOperation":
		return Verdict{Reason: no.Call + "AuthCheckFailed", Keep: true,
			Message: fmt.Sprintf("%s of a launch, as a dry run: %s: let the role of the functions launch with it, or change the class. EC2 says: %s", no.Call, why, no.Message)}
	case reason == awscode.LaunchFailed:
		return Verdict{} // that EC2 takes a dry run amiss in a way we know no word for is no reason to launch nothing
	}
	return Verdict{Reason: reason, Message: fmt.Sprintf("%s of a launch, as a dry run: %s. EC2 says: %s", no.Call, why, no.Message), Keep: true}
}

// judgeProfile: a profile that was made a moment ago is not known everywhere yet, which a launch outlives by trying again.
func judgeProfile(c *awsv1.EC2NodeClass, now time.Time) Verdict {
	ready, _ := c.StatusConditions().Get(awsv1.ConditionInstanceProfileReady)
	if c.Spec.InstanceProfile == nil && now.Sub(ready.LastTransitionTime.Time) < profileSettles {
		return Verdict{}
	}
	return Verdict{Reason: ReasonInstanceProfileNotFound, Message: "EC2 knows no instance profile " + c.Status.InstanceProfile + ": create it, or change spec.instanceProfile or spec.role"}
}
