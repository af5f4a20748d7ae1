package awserrors_test

import (
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/nodeclaim/awserrors"
)

// What codes mean to us; the last for those that only their text tells apart.
const (
	noCapacity    = "no capacity"
	throttled     = "throttled"
	missing       = "missing"
	denied        = "denied"
	malformed     = "malformed"
	alreadyExists = "already exists"
	wouldSucceed  = "would succeed"
	tokenReused   = "token reused"
	noSpotRole    = "no spot role"
	nothing       = ""
)

// meanings are all that the functions say of a code.
func meanings(code string) []string {
	var out []string
	for meaning, holds := range map[string]bool{
		noCapacity: awserrors.NoCapacity(code), throttled: awserrors.IsThrottled(code), missing: awserrors.IsMissing(answer{code, ""}), denied: awserrors.IsDenied(code),
		malformed: awserrors.IsMalformed(code), alreadyExists: awserrors.AlreadyExists(code), wouldSucceed: code == awserrors.WouldSucceed,
		tokenReused: code == awserrors.TokenReused, noSpotRole: code == awserrors.SpotRoleMissing,
	} {
		if holds {
			out = append(out, meaning)
		}
	}
	slices.Sort(out)
	return out
}

// codesByMeaning has the codes with which EC2 can answer what Joiner asks of it, as its API reference lists them, and
// those of IAM, SSM, EKS, Pricing, Savings Plans and S3 that Joiner meets.
func codesByMeaning() map[string]string {
	return map[string]string{
		noCapacity: `InsufficientInstanceCapacity MaxSpotInstanceCountExceeded VcpuLimitExceeded UnfulfillableCapacity Unsupported
			InsufficientFreeAddressesInSubnet MaxFleetCountExceeded ReservationCapacityExceeded InvalidCapacityReservationState.Unavailable SpotMaxPriceTooLow`,
		throttled: `RequestLimitExceeded Throttling ThrottlingException ThrottledException TooManyRequestsException RequestThrottled RequestThrottledException
			EC2ThrottledException SlowDown BandwidthLimitExceeded LimitExceededException PriorRequestNotComplete ProvisionedThroughputExceededException
			TransactionInProgressException`,
		missing: `InvalidInstanceID.NotFound InvalidLaunchTemplateName.NotFoundException InvalidLaunchTemplateId.NotFound InvalidCapacityReservationId.NotFound
			InvalidSubnetID.NotFound InvalidSubnet.NotFound InvalidGroup.NotFound InvalidSecurityGroupID.NotFound InvalidAMIID.NotFound InvalidAMIID.Malformed
			InvalidSnapshot.NotFound InvalidVolume.NotFound InvalidKeyPair.NotFound InvalidVpcID.NotFound InvalidNetworkInterfaceID.NotFound InvalidHostID.NotFound
			InvalidSpotInstanceRequestID.NotFound InvalidFleetId.NotFound InvalidPermission.NotFound InvalidGatewayID.NotFound InvalidID.NotFound
			NoSuchEntity ParameterNotFound ResourceNotFoundException NotFoundException`,
		denied: `UnauthorizedOperation AccessDenied AccessDeniedException AuthFailure`,
		malformed: `InvalidParameterValue InvalidParameter InvalidFilter ValidationException ValidationError InvalidInstanceID.Malformed
			InvalidSubnetID.Malformed InvalidUserData.Malformed InvalidSecurityGroupID.Malformed InvalidGroupId.Malformed InvalidLaunchTemplateId.Malformed
			InvalidSnapshotID.Malformed InvalidCapacityReservationId.Malformed InvalidLaunchTemplateName.Malformed`,
		alreadyExists: `EntityAlreadyExists InvalidLaunchTemplateName.AlreadyExistsException`,
		wouldSucceed:  `DryRunOperation`,
		tokenReused:   `IdempotentParameterMismatch`,
		noSpotRole:    `AuthFailure.ServiceLinkedRoleCreationNotPermitted`,
		nothing: `Blocked IncompleteSignature InvalidAction InvalidCharacter InvalidClientTokenId InvalidPaginationToken InvalidNextToken InvalidParameterCombination
			InvalidParameterDependency InvalidQueryParameter MalformedQueryString MissingAction MissingAuthenticationToken MissingParameter OptInRequired
			PendingVerification RequestExpired UnauthorizedOperationException UnknownParameter UnsupportedInstanceAttribute UnsupportedOperation UnsupportedProtocol
			UnsupportedHostConfiguration UnsupportedHibernationConfiguration UnsupportedTenancy VPCIdNotSpecified UnknownPrincipalType.Unsupported
			InstanceLimitExceeded InsufficientHostCapacity InsufficientReservedInstanceCapacity InsufficientCapacity InsufficientCapacityOnHost
			InsufficientAddressCapacity InsufficientVolumeCapacity InsufficientNetworkInterfaceCapacity HostLimitExceeded VolumeLimitExceeded SnapshotLimitExceeded
			MaxIOPSLimitExceeded InstanceCreditSpecification.NotSupported ConcurrentTagAccess TagLimitExceeded TagPolicyViolation ResourceCountExceeded
			ResourceLimitExceeded LimitExceeded LimitPriceExceeded MaxSpotFleetRequestCountExceeded FleetNotInModifiableState
			IncorrectInstanceState IncorrectState IncorrectSpotRequestState OperationNotPermitted DependencyViolation InvalidInstanceType
			InvalidInstanceAttributeValue InvalidAvailabilityZone InvalidBlockDeviceMapping InvalidVolumeID.ZoneMismatch InvalidInput InvalidIamInstanceProfile
			InvalidKey.Format InvalidPlacementGroup.Unknown InvalidPlacementGroup.InUse InvalidGroup.InUse
			InvalidGroup.Reserved InvalidGroup.Duplicate InvalidAMIID.Unavailable InvalidSpotFleetRequestConfig
			InvalidLaunchTemplateName.AlreadyExists InvalidLaunchTemplateVersion.Unknown InvalidRequest InvalidState
			InvalidTargetArn.Unknown InvalidTenancy InvalidVersion InvalidZone NetworkInterfaceLimitExceeded NonEBSInstance PrivateIpAddressLimitExceeded
			RequestResourceCountExceeded RulesPerSecurityGroupLimitExceeded SecurityGroupsPerInterfaceLimitExceeded SecurityGroupLimitExceeded VPCResourceNotSpecified
			VolumeTypeNotAvailableInZone VolumeTypeNotAvailableInRegion InternalError InternalFailure Internal InternalServerError ServiceUnavailable Unavailable
			BadGatewayException ExpiredToken ExpiredTokenException SignatureDoesNotMatch UnrecognizedClientException NoSuchKey NoSuchBucket PreconditionFailed
			EntityTemporarilyUnmodifiable DeleteConflict ConcurrentModification ServiceFailure ServerException TooFewInstances`,
	}
}

// Every code means one thing at most, and what it is taken for. That a call was throttled, or not allowed, says nothing
// about capacity.
func TestWhatEveryCodeMeans(t *testing.T) {
	seen := map[string]bool{}
	for want, codes := range codesByMeaning() {
		for code := range strings.FieldsSeq(codes) {
			if seen[code] {
				t.Errorf("%s is listed twice", code)
			}
			seen[code] = true
			got := meanings(code)
			if want == nothing && len(got) > 0 || want != nothing && !slices.Equal(got, []string{want}) {
				t.Errorf("%s means %q, want %q", code, got, want)
			}
		}
	}
	for _, code := range []string{"", "requestlimitexceeded", "Unauthorized", "NotFound", "Malformed"} {
		if got := meanings(code); len(got) > 0 {
			t.Errorf("%q means %q", code, got)
		}
	}
}
