package conformance

// disagreement says who is right where the emulator and moto answer differently.
type disagreement struct {
	about  []string // names of the questions
	says   string   // what is documented, in short
	source string   // where, or "nothing"
	right  string   // emulator, moto, or both when the documentation leaves it open
}

const api = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"

func disagreements() []disagreement {
	return []disagreement{
		{[]string{"ec2 DescribeSubnets: unknown filter"},
			"a filter that the call does not know is an InvalidParameterValue; moto fails with a page that is no answer", api + "errors-overview.html", "emulator"},
		{[]string{"ec2 DescribeInstanceTypes: pages of 100 with our filters"},
			"MaxResults is 5 to 100, and the rest comes with NextToken; moto gives everything at once", api + "API_DescribeInstanceTypes.html", "emulator"},
		{[]string{"ec2 DescribeInstanceTypes: dry run"},
			"DryRun: with the permissions the error is DryRunOperation", api + "API_DescribeInstanceTypes.html", "emulator"},
		{[]string{"ec2 DescribeCapacityReservations: unknown id"},
			"the error is InvalidCapacityReservationId.NotFound; moto does not know the call", api + "errors-overview.html", "emulator"},
		{[]string{"ec2 DescribePlacementGroups: unknown name"},
			"the error is InvalidPlacementGroup.Unknown; moto does not know the call", api + "errors-overview.html", "emulator"},
		{[]string{"ec2 DescribeImages: by name, of our own", "ec2 DescribeImages: by tag", "ec2 DescribeImages: by the key of a tag", "ec2 DescribeImages: by id"},
			"an image has the architecture that it was registered with; moto forgets it", api + "API_RegisterImage.html", "emulator"},
		{[]string{"ec2 CreateFleet: the same token again", "ec2 CreateFleet: the token with another request"},
			"ClientToken makes the request idempotent: the same request gets the first answer and starts nothing, another one IdempotentParameterMismatch; moto does not look at it",
			api + "ec2-api-idempotency.html", "emulator"},
		{[]string{"ec2 CreateFleet: a type that the zone does not sell"},
			"an instant fleet lists in Errors what could not be launched; moto sells every type everywhere", api + "API_CreateFleet.html", "emulator"},
		{[]string{"ec2 DescribeInstances: an instance of the fleet"},
			"an instance has the security groups of its template's interfaces, and the tags aws:ec2launchtemplate:id and :version; moto leaves out both",
			"https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/launch-instances-from-launch-template.html", "emulator"},
		{[]string{"ec2 CreateTags: unknown instance"},
			"the error is InvalidInstanceID.NotFound; moto tags what there is not", api + "errors-overview.html", "emulator"},
		{[]string{"ec2 DescribeInstanceStatus: the impaired ones", "ec2 DescribeInstanceStatus: by the other check", "ec2 DescribeInstanceStatus: what is scheduled"},
			"the filters instance-status.status, system-status.status and event.code select by check and event; moto does not look at them", api + "API_DescribeInstanceStatus.html", "emulator"},
		{[]string{"ec2 StopInstances: a spot instance"},
			"a spot instance of a fleet or of a request that is not persistent cannot be stopped; moto stops it",
			"https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-instances-request.html", "emulator"},
		{[]string{"ec2 DescribeInstances: the addresses of a stopped instance", "ec2 DescribeInstances: the addresses of an instance that was started"},
			"a template's interface gives a public address; a stop gives it back, a start brings another, and the private one stays; moto gives instances of a fleet no public address",
			"https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-instance-addressing.html", "emulator"},
		{[]string{"ec2 DeleteLaunchTemplate: again", "ec2 DeleteLaunchTemplate: unknown id"},
			"the errors are InvalidLaunchTemplateName.NotFoundException and InvalidLaunchTemplateId.NotFound", api + "errors-overview.html", "emulator"},
		{[]string{"iam ListInstanceProfiles: by another path"},
			"PathPrefix filters the result; moto gives all", "https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListInstanceProfiles.html", "emulator"},
		{[]string{"iam RemoveRoleFromInstanceProfile: again"},
			"the error is NoSuchEntity; moto fails with a page that is no answer", "https://docs.aws.amazon.com/IAM/latest/APIReference/API_RemoveRoleFromInstanceProfile.html", "emulator"},
		{[]string{"ssm GetParameter: the recommended EKS image"},
			"the parameter exists for every version that EKS supports; moto has none of EKS", "https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html", "emulator"},
		{[]string{"eks ListAccessEntries: unknown cluster", "eks DescribeAccessEntry: unknown", "eks DeleteAccessEntry: unknown", "eks UpdateAccessEntry: unknown",
			"eks CreateAccessEntry: a node role", "eks CreateAccessEntry: the same again", "eks DescribeAccessEntry: a node role", "eks DeleteAccessEntry: a node role",
			"eks CreateAccessEntry: a function", "eks UpdateAccessEntry: other groups", "eks DescribeAccessEntry: a function", "eks ListAccessEntries: one",
			"eks CreateAccessEntry: unknown cluster"},
			"the errors are ResourceNotFoundException, and ResourceInUseException for an entry that exists; moto does not know access entries",
			"https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAccessEntry.html", "emulator"},
		{[]string{"ec2 DescribeReservedInstances: the active ones"},
			"an account without them has an empty list; moto does not know the call", api + "API_DescribeReservedInstances.html", "emulator"},
		{[]string{"savingsplans DescribeSavingsPlans: the active ones", "savingsplans DescribeSavingsPlanRates: unknown id"},
			"an account without them has an empty list, and an unknown plan is a ResourceNotFoundException; moto does not know the service",
			"https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_DescribeSavingsPlanRates.html", "emulator"},
		{[]string{"pricing GetProducts: m5.large"},
			"the answer is a list of products as JSON text; moto fails with a page that is no answer",
			"https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html", "emulator"},
	}
}
