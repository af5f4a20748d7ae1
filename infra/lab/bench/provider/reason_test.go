package provider

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	peererrors "github.com/aws/karpenter-provider-aws/pkg/errors"
	"github.com/aws/smithy-go"

	"joiner.sh/pkg/nodeclaim/awserrors"
)

// launchErrors are codes of AWS with messages that come with them.
func launchErrors() []smithy.GenericAPIError {
	return []smithy.GenericAPIError{
		{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"}, {Code: "UnauthorizedOperation"}, {Code: "AccessDenied"}, {Code: "AccessDeniedException"}, {Code: "AuthFailure"},
		{Code: "UnauthorizedOperation", Message: "with an explicit deny in a permissions boundary"}, {Code: "UnauthorizedOperation", Message: "with an explicit deny in a service control policy"},
		{Code: "AuthFailure", Message: "Not authorized for images: [ami-1]"}, {Code: "InvalidParameter", Message: "Security group sg-1 and subnet subnet-1 belong to different networks."},
		{Code: "InvalidParameterValue", Message: "Value (p) for parameter iamInstanceProfile.name is invalid"}, {Code: "InvalidLaunchTemplateId.NotFound"}, {Code: "InvalidParameterValue", Message: "User data is limited to 16384 bytes"},
		{Code: "InvalidAMIID.Malformed"}, {Code: "InvalidAMIID.NotFound"}, {Code: "RequestLimitExceeded"}, {Code: "InternalError"}, {Code: "InvalidParameterCombination", Message: "The specified instance type is not eligible for Free Tier"},
		{Code: "MaxFleetCountExceeded"}, {Code: "PendingVerification"}, {Code: "MaxSpotInstanceCountExceeded"}, {Code: "VcpuLimitExceeded"}, {Code: "InsufficientFreeAddressesInSubnet"},
		{Code: "InsufficientInstanceCapacity"}, {Code: "UnfulfillableCapacity"}, {Code: "Unsupported"}, {Code: "ReservationCapacityExceeded"}, {Code: "InvalidCapacityReservationState.Unavailable"},
		{Code: "SpotMaxPriceTooLow"}, {Code: "InvalidSubnetID.NotFound"}, {Code: "InvalidGroup.NotFound"}, {Code: "Throttling"}, {Code: "SomethingElse", Message: "nobody knows"},
	}
}

// A launch that failed has Karpenter's reason on the claim.
func TestFailedLaunchesHaveKarpentersReason(t *testing.T) {
	for _, e := range launchErrors() {
		want, _ := peererrors.ToReasonMessage(&e)
		if got, _ := awserrors.LaunchFailureReason(&e); got != want {
			t.Errorf("%s %s: %s, Karpenter says %s", e.Code, e.Message, got, want)
		}
	}
}

// An offering that EC2 refuses is left alone for a while for the codes that Karpenter does so for.
func TestCodesOfMissingCapacityAreKarpenters(t *testing.T) {
	for _, e := range launchErrors() {
		want := peererrors.IsUnfulfillableCapacity(types.CreateFleetError{ErrorCode: aws.String(e.Code)})
		if got := awserrors.NoCapacity(e.Code); got != want && !strings.Contains(capacityCodesOfLater, e.Code) {
			t.Errorf("%s means that there is no capacity: %t, to Karpenter: %t", e.Code, got, want)
		}
	}
}
