// Package awserrors knows what the error codes of AWS mean to us.
//
// It reads them off errors by their methods, so it needs no SDK, and is the one place that spells codes which more than
// one adapter meets. It refuses to know what is done about them.
package awserrors

import (
	"errors"
	"slices"
	"strings"
)

// coded is implemented by those errors of the SDK that hold an answer of AWS.
type coded interface {
	error
	ErrorCode() string
	ErrorMessage() string
}

// CodeOf is the AWS error code of err, empty for an error that is no answer of AWS.
func CodeOf(err error) string {
	if c, ok := errors.AsType[coded](err); ok {
		return c.ErrorCode()
	}
	return ""
}

// MessageOf returns what AWS says beside the code, empty for an error that is no answer of AWS.
func MessageOf(err error) string {
	if c, ok := errors.AsType[coded](err); ok {
		return c.ErrorMessage()
	}
	return ""
}

// Codes that mean one thing each.
const (
	// WouldSucceed is the code of a dry run that found nothing wrong.
	WouldSucceed = "DryRunOperation"
	// TokenReused is the code for a client token that came with another request before.
	TokenReused = "IdempotentParameterMismatch"
	// SpotRoleMissing is the code for a spot request in an account without the service-linked role for spot and without
	// the right to make it.
	SpotRoleMissing = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
	// NoAddresses is the code for a subnet without a free address.
	NoAddresses = "InsufficientFreeAddressesInSubnet"
	// notPermitted is for an instance with termination or stop protection.
	notPermitted = "OperationNotPermitted"
	// malformedImage is for an image id that could be none.
	malformedImage = "InvalidAMIID.Malformed"
)

// IsMissing reports whether AWS says that what was asked for does not exist.
func IsMissing(err error) bool {
	c := CodeOf(err)
	return strings.HasSuffix(c, ".NotFound") || strings.HasSuffix(c, "NotFoundException") || c == "NoSuchEntity" ||
		c == "ParameterNotFound" ||
		c == malformedImage
}

// AlreadyExists reports whether the code says that what was to be made is there.
func AlreadyExists(code string) bool {
	return code == "EntityAlreadyExists" || code == "InvalidLaunchTemplateName.AlreadyExistsException"
}

// IsThrottled reports whether the code says that a call came too soon after others. The SDK tries again on the same
// codes.
func IsThrottled(code string) bool {
	return slices.Contains([]string{"RequestLimitExceeded", "Throttling", "ThrottlingException",
		"ThrottledException", "TooManyRequestsException", "RequestThrottled", "RequestThrottledException",
		"EC2ThrottledException", "SlowDown", "BandwidthLimitExceeded", "LimitExceededException",
		"PriorRequestNotComplete", "ProvisionedThroughputExceededException", "TransactionInProgressException"}, code)
}

// IsServerFault reports whether the code says that EC2 itself failed ("Error codes for the Amazon EC2 API", server
// error codes), so that it is no answer to what was asked.
func IsServerFault(code string) bool {
	return slices.Contains([]string{"InternalError", "InternalFailure", "ServiceUnavailable", "ServerInternal",
		"Unavailable"}, code)
}

// IsDenied reports whether the code says that no policy allows the call.
func IsDenied(code string) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException",
		"AuthFailure"}, code)
}

// IsUnreadable reports whether the code says that what is stored in S3 may not be read, by a policy or because the key
// that encrypts it may not be used any more. Asking again does not help.
func IsUnreadable(code string) bool {
	return IsDenied(code) || strings.HasPrefix(code, "KMS.") && !strings.Contains(code, "Throttl")
}

// RefusalReason says in one word and one text why EC2 does not end or stop an instance, and what to do about it.
func RefusalReason(instance, code, message string) (reason, text string) {
	costs := "instance " + instance + " runs on and costs money until it is ended: "
	said := ". EC2 says: " + code + ": " + cutText(message)
	switch {
	case code == notPermitted:
		return "InstanceProtected", costs + "it is protected from being ended; turn that off with " +
			"\"aws ec2 modify-instance-attribute --instance-id " + instance + " --no-disable-api-termination\" " +
			"(--no-disable-api-stop for stop protection), or end it by hand" + said
	case IsDenied(code):
		return "Unauthorized", costs + "a policy denies it; give it back its tags kubernetes.io/cluster/<cluster> " +
			"and karpenter.sh/nodepool if it lost them, else let the role of the lifecycle function end it, or end it " +
			"by hand" + said
	}
	return "InstanceNotEnded", costs + "end it by hand" + said
}

// IsAboutType reports whether the code may refuse a launch for its instance type alone.
func IsAboutType(code string) bool {
	return IsDenied(code) || NoCapacity(code) || code == "InvalidParameterCombination"
}

// IsAboutOffering reports whether the code may refuse one offering of a launch and not the others, when the answer
// names it.
func IsAboutOffering(code string) bool {
	return slices.Contains([]string{"OptInRequired", "PendingVerification", "InstanceLimitExceeded",
		"InsufficientHostCapacity"}, code) || IsAboutType(code)
}

// IsMalformed reports whether the code says that AWS does not understand a value of the request. An image id that could
// be none is Missing.
func IsMalformed(code string) bool {
	return slices.Contains([]string{"ValidationException", "ValidationError", "InvalidParameterValue",
		"InvalidParameter", "InvalidFilter"}, code) || strings.HasSuffix(code, ".Malformed") && code != malformedImage
}

// IsQuota reports whether the owner of the account can mend what the code says: a quota is used up, or the addresses of
// a subnet.
func IsQuota(code string) bool {
	return slices.Contains([]string{"VcpuLimitExceeded", "InstanceLimitExceeded",
		"MaxSpotInstanceCountExceeded", "MaxFleetCountExceeded", NoAddresses}, code)
}

// NoCapacity reports whether the code means that an offering is refused for lack of capacity or quota (ICE codes).
func NoCapacity(code string) bool {
	return slices.Contains([]string{"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded",
		"VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported", NoAddresses, "MaxFleetCountExceeded",
		"ReservationCapacityExceeded", "InvalidCapacityReservationState.Unavailable", "SpotMaxPriceTooLow"}, code)
}

// longest is the largest number of bytes that people are shown of an error that is not understood.
const longest = 300

// LaunchFailed is the reason of a launch that failed in a way we know no word for.
const LaunchFailed = "LaunchFailed"

// reasonRule gives the meaning of an error text.
type reasonRule struct {
	all     []string // that the text holds
	reason  string
	message string
}

// LaunchFailureReason says in one word and one sentence why a launch failed, by the text of its error; the first match
// counts. Refused images come before other refusals, which their code would count them among.
func LaunchFailureReason(err error) (reason, message string) {
	text := err.Error()
	for _, v := range reasonRules() {
		if !slices.ContainsFunc(v.all, func(part string) bool { return !strings.Contains(text, part) }) {
			return v.reason, v.message
		}
	}
	return LaunchFailed, cutText(text)
}

// cutText is the text, or the beginning of a long one.
func cutText(text string) string {
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return text
}

func reasonRules() []reasonRule {
	const boundary, policy = "explicit deny in a permissions boundary", "explicit deny in a service control policy"
	out := []reasonRule{
		{[]string{SpotRoleMissing}, "SpotSLRCreationFailed",
			"the account has no service-linked role for spot, and we may not create it"},
		{[]string{"Not authorized for images"}, "AMIAuthorizationFailure", "the account may not use the AMI"},
	}
	for _, code := range []string{"UnauthorizedOperation", "AccessDenied", "AuthFailure"} {
		out = append(out,
			reasonRule{[]string{code, boundary}, "Unauthorized", "a permissions boundary denies the call"},
			reasonRule{[]string{code, policy}, "Unauthorized", "a service control policy denies the call"},
			reasonRule{[]string{code}, "Unauthorized", "no policy allows the call"})
	}
	return append(out,
		reasonRule{[]string{"Security group", "belong to different networks"}, "SecurityGroupSubnetVPCMismatch",
			"security groups and subnet are of different VPCs"},
		reasonRule{[]string{"iamInstanceProfile.name is invalid"}, "InstanceProfileNameInvalid",
			"the instance profile does not exist"},
		reasonRule{[]string{"Invalid IAM Instance Profile name"}, "InstanceProfileNameInvalid",
			"the instance profile does not exist"},
		reasonRule{[]string{"InvalidLaunchTemplateName.NotFoundException"}, "LaunchTemplateNotFound",
			"the launch template is gone"},
		reasonRule{[]string{"InvalidLaunchTemplateId.NotFound"}, "LaunchTemplateNotFound",
			"the launch template is gone"},
		reasonRule{[]string{"User data is limited to"}, "UserDataSizeLimitExceeded",
			"the user data is longer than EC2 takes"},
		reasonRule{[]string{"InvalidAMIID.Malformed"}, "InvalidAMIID", "the AMI's id is none"},
		reasonRule{[]string{"InvalidAMIID.NotFound"}, "AMINotFound", "the AMI does not exist"},
		reasonRule{[]string{"RequestLimitExceeded"}, "RequestLimitExceeded", "EC2 takes no more requests for now"},
		reasonRule{[]string{"InternalError"}, "InternalError", "EC2 failed"},
		reasonRule{[]string{"not eligible for Free Tier"}, "FreeTierIneligible",
			"the account may only launch types of the free tier"},
		reasonRule{[]string{"MaxFleetCountExceeded"}, "FleetQuotaExceeded",
			"the account has as many fleets as it may have"},
		reasonRule{[]string{"PendingVerification"}, "AccountPendingVerification",
			"AWS has not verified the account for the region yet"},
		reasonRule{[]string{"MaxSpotInstanceCountExceeded"}, "SpotQuotaExceeded",
			"the account has as many spot instances as it may have"},
		reasonRule{[]string{"VcpuLimitExceeded"}, "VCPULimitExceeded", "the account has as many vCPUs as it may have"},
		reasonRule{[]string{"InsufficientFreeAddressesInSubnet"}, "InsufficientFreeAddressesInSubnet",
			"the subnet has no address left"},
	)
}
