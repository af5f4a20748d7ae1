package nodeclass

import (
	"cmp"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// Reasons of a look-up that did not come to an end. They are ours: Karpenter leaves the condition as it was.
const (
	ReasonUnauthorized = "Unauthorized"
	ReasonLookUpFailed = "LookUpFailed"

	ReasonReservationsNotFound = "CapacityReservationsNotFound"
)

// TermError says that AWS does not take a selector term as it is.
type TermError struct{ Why string }

// Error returns what AWS says about it.
func (e *TermError) Error() string { return e.Why }

func notTerm(err error) error {
	if _, ok := errors.AsType[*TermError](err); ok {
		return nil
	}
	return err
}

// recordUnfound says on the class why a look-up failed, and reports whether what it found before is void: only the user
// can help against a malformed term. Otherwise a condition that is True for the present spec stays, so that a throttled
// call does no harm.
func recordUnfound(c *awsv1.EC2NodeClass, condition, notFound string, err error, now time.Time) (void bool) {
	conditions := c.StatusConditions()
	if term, ok := errors.AsType[*TermError](err); ok {
		conditions.SetFalse(condition, notFound, term.Why, now)
		return true
	}
	k, _ := conditions.Get(condition)
	code := awserrors.CodeOf(err)
	switch {
	case k.Status == metav1.ConditionTrue && k.ObservedGeneration == c.Generation:
	case awserrors.IsDenied(code):
		conditions.SetFalse(condition, ReasonUnauthorized,
			"the role of the function refresh may not look: "+awserrors.MessageOf(err), now)
	default:
		conditions.SetUnknown(condition, ReasonLookUpFailed,
			"it could not be looked up, the next refresh tries again: "+cmp.Or(code, "no answer"), now)
	}
	return false
}
