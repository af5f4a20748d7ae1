package fleet

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// incorrectState is the code for an instance in a state from which it cannot be started or stopped.
const incorrectState = "IncorrectInstanceState"

// NotStartableError says that an instance is not started: it is gone, in a state that allows no start, or the call is
// not allowed.
type NotStartableError struct{ error }

// Unwrap is the error of EC2.
func (e *NotStartableError) Unwrap() error { return e.error }

// NotStartable reports true. It lets callers who may not know this package ask errors.As for an interface with this
// method.
func (e *NotStartableError) NotStartable() bool { return true }

// StopInstances stops the instances. One that is stopped already, that ends, or that EC2 does not know is no error.
// Those that EC2 refuses keep no others running: the error is a *RefusedError for each.
func (f *Fleet) StopInstances(ctx context.Context, ids []string) error {
	return joinByID(ids, f.refused.split(ids, func(ids []string) (named []string, err error) {
		out, err := f.EC2.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: ids})
		switch code := awserrors.CodeOf(err); {
		case len(ids) == 1 && (code == instanceNotFound || code == incorrectState):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("stop: %w", err)
		}
		return namedIn(out.StoppingInstances), nil
	}))
}

// StartInstance starts a stopped instance, which was bought as the offering. One that runs is no error. The error is a
// *instancetypes.NoCapacityError when EC2 has no capacity or no quota for it, and a *NotStartableError when it is gone,
// in no state to be started from, or the call is not allowed.
func (f *Fleet) StartInstance(ctx context.Context, id string, o instancetypes.OfferingKey) error {
	_, err := f.EC2.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	switch code := awserrors.CodeOf(err); {
	case err == nil:
		return nil
	case awserrors.NoCapacity(code):
		return &instancetypes.NoCapacityError{
			Unavailable: []instancetypes.UnavailableOffering{{OfferingKey: o, Why: code}}}
	case awserrors.IsMissing(err) || awserrors.IsDenied(code) || code == incorrectState ||
		code == "UnsupportedOperation":
		return &NotStartableError{fmt.Errorf("start instance %s: %w", id, err)}
	}
	return fmt.Errorf("start instance %s: %w", id, err)
}
