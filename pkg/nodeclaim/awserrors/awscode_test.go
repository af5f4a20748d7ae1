package awserrors_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"joiner.sh/pkg/nodeclaim/awserrors"
)

type answer struct{ code, message string }

func (a answer) Error() string        { return "api error " + a.code + ": " + a.message }
func (a answer) ErrorCode() string    { return a.code }
func (a answer) ErrorMessage() string { return a.message }

func TestCodeAndMessageAreReadThroughWrapping(t *testing.T) {
	err := fmt.Errorf("create fleet: %w", answer{"RequestLimitExceeded", "slow down"})
	if awserrors.CodeOf(err) != "RequestLimitExceeded" || awserrors.MessageOf(err) != "slow down" {
		t.Errorf("%q, %q", awserrors.CodeOf(err), awserrors.MessageOf(err))
	}
	if plain := errors.New("connection reset"); awserrors.CodeOf(plain)+awserrors.MessageOf(plain) != "" {
		t.Error("an error without a code has one")
	}
}

func TestWhatIsMissing(t *testing.T) {
	for code, want := range map[string]bool{
		"InvalidInstanceID.NotFound": true, "InvalidLaunchTemplateName.NotFoundException": true, "InvalidLaunchTemplateId.NotFound": true,
		"NoSuchEntity": true, "ParameterNotFound": true, "InvalidAMIID.Malformed": true, "UnauthorizedOperation": false, "EntityAlreadyExists": false,
	} {
		if got := awserrors.IsMissing(answer{code, ""}); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
}

// TestReasonsOfFailedLaunches has the reasons, each with a text as EC2 writes it.
func TestReasonsOfFailedLaunches(t *testing.T) {
	for text, want := range map[string]string{
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted: The provided credentials do not have permission":                      "SpotSLRCreationFailed: the account has no service-linked role for spot, and we may not create it",
		"UnauthorizedOperation: You are not authorized to perform this operation. User: arn:x":                                    "Unauthorized: no policy allows the call",
		"AccessDenied: User: arn:x is not authorized to perform: ec2:CreateFleet with an explicit deny in a permissions boundary": "Unauthorized: a permissions boundary denies the call",
		"UnauthorizedOperation: User: arn:x is not authorized to perform: y with an explicit deny in a service control policy":    "Unauthorized: a service control policy denies the call",
		"AuthFailure: Not authorized for images: [ami-1]":                                                                         "AMIAuthorizationFailure: the account may not use the AMI",
		"InvalidParameter: Security group sg-1 and subnet subnet-1 belong to different networks.":                                 "SecurityGroupSubnetVPCMismatch: security groups and subnet are of different VPCs",
		"InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name":    "InstanceProfileNameInvalid: the instance profile does not exist",
		"InvalidLaunchTemplateName.NotFoundException: The specified launch template, with template name x, does not exist.":       "LaunchTemplateNotFound: the launch template is gone",
		"InvalidUserData.Malformed: User data is limited to 16384 bytes":                                                          "UserDataSizeLimitExceeded: the user data is longer than EC2 takes",
		"InvalidAMIID.Malformed: Invalid id: \"ami\"":                                                                             "InvalidAMIID: the AMI's id is none",
		"InvalidAMIID.NotFound: The image id '[ami-1]' does not exist":                                                            "AMINotFound: the AMI does not exist",
		"RequestLimitExceeded: Request limit exceeded.":                                                                           "RequestLimitExceeded: EC2 takes no more requests for now",
		"InternalError: An internal error has occurred":                                                                           "InternalError: EC2 failed",
		"InvalidParameterCombination: The specified instance type is not eligible for Free Tier":                                  "FreeTierIneligible: the account may only launch types of the free tier",
		"MaxFleetCountExceeded: x":                                       "FleetQuotaExceeded: the account has as many fleets as it may have",
		"PendingVerification: Your request for accessing resources":      "AccountPendingVerification: AWS has not verified the account for the region yet",
		"MaxSpotInstanceCountExceeded: Max spot instance count exceeded": "SpotQuotaExceeded: the account has as many spot instances as it may have",
		"VcpuLimitExceeded: You have requested more vCPU capacity":       "VCPULimitExceeded: the account has as many vCPUs as it may have",
		"InsufficientFreeAddressesInSubnet: There are not enough free":   "InsufficientFreeAddressesInSubnet: the subnet has no address left",
		"TooFewInstances: EC2 started no instance and gave no error":     "LaunchFailed: TooFewInstances: EC2 started no instance and gave no error",
		strings.Repeat("é", 200):                                         "LaunchFailed: " + strings.Repeat("é", 150) + "...",
	} {
		reason, message := awserrors.LaunchFailureReason(errors.New(text))
		if got := reason + ": " + message; got != want {
			t.Errorf("%s\n got  %s\n want %s", text, got, want)
		}
	}
}

// What S3 answers about an object that stays unreadable, and what passes.
func TestWhatIsUnreadable(t *testing.T) {
	for code, want := range map[string]bool{"AccessDenied": true, "KMS.DisabledException": true, "KMS.NotFoundException": true, "KMS.KMSInvalidStateException": true,
		"KMS.ThrottlingException": false, "SlowDown": false, "InternalError": false, "NoSuchKey": false, "": false} {
		if got := awserrors.IsUnreadable(code); got != want {
			t.Errorf("%q: %t", code, got)
		}
	}
}
