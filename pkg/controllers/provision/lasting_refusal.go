package provision

import (
	"errors"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// avoidRefused returns the error of a launch as the next launch is to read it. After half of the launch time-out in
// which EC2 refused for one reason it is a *instancetypes.NoCapacityError. That makes all offerings of the order
// unavailable for the claim's EC2NodeClass: what else the claim allows is asked for, and where that is nothing its pods
// go to other NodePools. The other classes have their offerings still, for the cause may be in this one. A throttle or
// a failure of EC2 says nothing about offerings.
func avoidRefused(controller *Controller, c cluster.Claim, o launch.Order, err error) error {
	if !isRefused(err) {
		return err
	}
	reason, message := awserrors.LaunchFailureReason(err)
	have := c.Condition(v1.ConditionLaunched)
	if have.Status != "Unknown" || have.Reason != reason ||
		controller.Now().Before(have.Since.Add(controller.Rules.LaunchTimeout/2)) {
		return err
	}
	no := &instancetypes.NoCapacityError{}
	for _, f := range o.Offerings() {
		no.Unavailable = append(no.Unavailable, instancetypes.UnavailableOffering{OfferingKey: f,
			Scope: instancetypes.ClassScope(c.ClassKey()), Why: reason + ": " + message})
	}
	return no
}

// isRefused reports whether EC2 answered a launch with no.
func isRefused(err error) bool {
	r, ok := errors.AsType[interface {
		error
		Refused() bool
	}](err)
	return ok && r.Refused()
}
