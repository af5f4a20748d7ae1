package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// SpotRole makes the service-linked role without which EC2 sells an account no spot capacity.
type SpotRole struct{ IAM *iam.Client }

// EnsureRole makes the role unless the account has it. May be repeated.
func (r SpotRole) EnsureRole(ctx context.Context) error {
	_, err := r.IAM.CreateServiceLinkedRole(ctx, &iam.CreateServiceLinkedRoleInput{
		AWSServiceName: aws.String("spot.amazonaws.com")})
	if taken, ok := errors.AsType[*types.InvalidInputException](err); ok &&
		strings.Contains(taken.ErrorMessage(), "has been taken in this account") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create service-linked role of spot: %w", err)
	}
	return nil
}
