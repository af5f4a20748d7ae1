package nodeclass

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/bootstrap"
)

// Image is an AMI as found, with one set of requirements.
type Image struct {
	ID, Name   string
	Arch       string // amd64 or arm64
	Created    time.Time
	Deprecated bool
	Needs      []corev1.NodeSelectorRequirement // besides the architecture
}

// Subnet is a subnet as found.
type Subnet struct {
	ID, Zone, ZoneID string
	Free             int64 // addresses
}

// Resolved holds what was found for a class. A part whose look-up failed has an error, and the status keeps what it
// says about it.
type Resolved struct {
	Images         []Image
	Subnets        []Subnet
	SecurityGroups []awsv1.SecurityGroup
	Placement      *instancetypes.Placement    // nil when there is none like the class selects
	Reservations   []awsv1.CapacityReservation // active ones, their state not filled in
	Profile        string
	ServiceCIDR    string         // of the cluster; empty when unknown
	Region         string         // where it was looked for
	Verdict        *DryRunVerdict // of a rehearsed launch; nil when none was due

	ImagesErr, SubnetsErr, GroupsErr, ReservationsErr, PlacementErr, ProfileErr error
}

// Reasons of InstanceProfileReady=False. They are ours: Karpenter leaves the condition as it was.
const (
	ReasonRoleNotFound           = "RoleNotFound"
	ReasonRoleNotAllowed         = "RoleNotAllowed"
	ReasonNoProfileInIsolatedVPC = "NoProfileInIsolatedVPC"
)

// ProfileError says why a class cannot have an instance profile until its user, or who rules IAM, changes something.
type ProfileError struct{ Reason, Why string }

// Error returns what to do about it.
func (e *ProfileError) Error() string { return e.Why }

// JoinErrors joins what could not be looked up. What the status tells the user to mend is no error: an alias that does
// not exist for the cluster's version, and a role that there is not.
func (r Resolved) JoinErrors() error {
	images, profile := r.ImagesErr, r.ProfileErr
	if _, ok := errors.AsType[*AliasError](images); ok {
		images = nil
	}
	if _, ok := errors.AsType[*ProfileError](profile); ok {
		profile = nil
	}
	return errors.Join(notTerm(images), notTerm(r.SubnetsErr), notTerm(r.GroupsErr), notTerm(r.ReservationsErr),
		r.PlacementErr, profile)
}

// UpdateStatus brings the status of the class up to date. It changes the class given and reports whether anything
// changed.
func UpdateStatus(c *awsv1.EC2NodeClass, r Resolved, now time.Time) bool {
	before := c.Status.DeepCopy()
	conditions := c.StatusConditions()
	conditions.Initialize()
	updateImages(c, r, now)
	updateSubnets(c, r, now)
	updateGroups(c, r, now)
	updateProfile(c, r, now)
	updateReservations(c, r, now)
	updatePlacement(c, r, now)
	validateClass(c, r, now)
	return !equalJSON(before, &c.Status)
}

func updateImages(c *awsv1.EC2NodeClass, r Resolved, now time.Time) {
	conditions := c.StatusConditions()
	if alias, ok := errors.AsType[*AliasError](r.ImagesErr); ok {
		c.Status.AMIs = nil
		conditions.SetFalse(awsv1.ConditionAMIsReady, awsv1.ReasonUnsupportedAlias, alias.Why, now)
		return
	}
	if r.ImagesErr != nil {
		if recordUnfound(c, awsv1.ConditionAMIsReady, awsv1.ReasonAMINotFound, r.ImagesErr, now) {
			c.Status.AMIs = nil
		}
		return
	}
	c.Status.AMIs = newestImages(r.Images)
	if len(c.Status.AMIs) == 0 {
		conditions.SetFalse(awsv1.ConditionAMIsReady, awsv1.ReasonAMINotFound,
			"no image in "+r.Region+" matches amiSelectorTerms ("+imageTerms(
				c)+"): check that it exists there and may be used by this account, or change the terms", now)
		return
	}
	conditions.SetTrue(awsv1.ConditionAMIsReady, now)
}

func updateSubnets(c *awsv1.EC2NodeClass, r Resolved, now time.Time) {
	if r.SubnetsErr != nil {
		if recordUnfound(c, awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound, r.SubnetsErr, now) {
			c.Status.Subnets = nil
		}
		return
	}
	conditions := c.StatusConditions()
	found := slices.Clone(r.Subnets)
	slices.SortFunc(found, func(a, b Subnet) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free),
			cmp.Compare(a.ID, b.ID))
	})
	c.Status.Subnets = lists.Of(found,
		func(s Subnet) awsv1.Subnet { return awsv1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID} })
	if len(found) == 0 {
		terms := lists.Of(c.Spec.SubnetSelectorTerms,
			func(t awsv1.SubnetSelectorTerm) string { return termText(t.ID, "", t.Tags) })
		conditions.SetFalse(awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound,
			"no subnet in "+r.Region+" matches subnetSelectorTerms ("+strings.Join(terms,
				"; ")+"): tag a subnet or change the terms", now)
		return
	}
	conditions.SetTrue(awsv1.ConditionSubnetsReady, now)
}

func updateGroups(c *awsv1.EC2NodeClass, r Resolved, now time.Time) {
	if r.GroupsErr != nil {
		if recordUnfound(c, awsv1.ConditionSecurityGroupsReady, awsv1.ReasonSecurityGroupsNotFound, r.GroupsErr, now) {
			c.Status.SecurityGroups = nil
		}
		return
	}
	conditions := c.StatusConditions()
	found := slices.Clone(r.SecurityGroups)
	slices.SortFunc(found, func(a, b awsv1.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	c.Status.SecurityGroups = found
	if len(found) == 0 {
		terms := lists.Of(c.Spec.SecurityGroupSelectorTerms,
			func(t awsv1.SecurityGroupSelectorTerm) string { return termText(t.ID, t.Name, t.Tags) })
		conditions.SetFalse(awsv1.ConditionSecurityGroupsReady, awsv1.ReasonSecurityGroupsNotFound,
			"no security group in "+r.Region+" matches securityGroupSelectorTerms ("+strings.Join(terms,
				"; ")+"): tag a group or change the terms", now)
		return
	}
	conditions.SetTrue(awsv1.ConditionSecurityGroupsReady, now)
}

func updateProfile(c *awsv1.EC2NodeClass, r Resolved, now time.Time) {
	conditions := c.StatusConditions()
	if refused, ok := errors.AsType[*ProfileError](r.ProfileErr); ok {
		conditions.SetFalse(awsv1.ConditionInstanceProfileReady, refused.Reason, refused.Why, now)
		return
	}
	if r.ProfileErr != nil {
		recordUnfound(c, awsv1.ConditionInstanceProfileReady, ReasonRoleNotFound, r.ProfileErr, now)
		return
	}
	c.Status.InstanceProfile = r.Profile
	conditions.SetTrue(awsv1.ConditionInstanceProfileReady, now)
}

// validateClass says whether a launch with the class can work: its dependencies are True and EC2 takes a dry run.
func validateClass(c *awsv1.EC2NodeClass, r Resolved, now time.Time) {
	conditions := c.StatusConditions()
	if reason, message := KubeletProblem(c); reason != "" {
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, reason, message, now)
		return
	}
	if c.ResolvedAMIFamily() == awsv1.AMIFamilyAL2023 && r.ServiceCIDR == "" {
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, awsv1.ReasonClusterCIDRResolutionFailed,
			"the service CIDR of the cluster is not known: EKS tells it the stack when it is deployed; deploy it again", now)
		return
	}
	if waits := slices.Concat(pendingConditions(c, metav1.ConditionFalse),
		pendingConditions(c, metav1.ConditionUnknown)); len(waits) > 0 {
		first := waits[0]
		if first.Status == metav1.ConditionFalse {
			conditions.SetFalse(awsv1.ConditionValidationSucceeded, awsv1.ReasonDependenciesNotReady,
				first.Type+": "+first.Message, now)
		} else {
			conditions.SetUnknown(awsv1.ConditionValidationSucceeded, awsv1.ReasonDependenciesNotReady,
				first.Type+" is not known yet", now)
		}
		return
	}
	if key, found := awsv1.RestrictedTag(c.Spec.Tags); found {
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, awsv1.ReasonTagValidationFailed,
			"spec.tags may not hold "+key+": Joiner sets it", now)
		return
	}
	switch v := r.Verdict; {
	case v == nil || v.Reason == "" && !v.Unknown:
		conditions.Set(metav1.Condition{Type: awsv1.ConditionValidationSucceeded, Status: metav1.ConditionTrue,
			Message: MisreadUserData(c)}, now)
	case !v.Unknown:
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, v.Reason, v.Message, now)
	}
}

// MisreadUserData returns what nodes of the class make of user data that was written for images of another family,
// empty for nothing. They may join all the same, so the class stays Ready.
func MisreadUserData(c *awsv1.EC2NodeClass) string {
	if c.Spec.UserData == nil {
		return ""
	}
	return bootstrap.MisreadUserData(c.ResolvedAMIFamily(), *c.Spec.UserData)
}

// pendingConditions are the conditions with that status that validation waits for.
func pendingConditions(c *awsv1.EC2NodeClass, status metav1.ConditionStatus) []metav1.Condition {
	var out []metav1.Condition
	for _, t := range []string{awsv1.ConditionAMIsReady, awsv1.ConditionInstanceProfileReady,
		awsv1.ConditionSecurityGroupsReady, awsv1.ConditionSubnetsReady} {
		k, _ := c.StatusConditions().Get(t)
		if k.ObservedGeneration != c.Generation {
			k.Status = metav1.ConditionUnknown // it speaks of an older spec
		}
		if k.Type = t; k.Status == status {
			out = append(out, k)
		}
	}
	return out
}

// newestImages keeps one image for each set of requirements and sorts them newest first.
func newestImages(images []Image) []awsv1.AMI {
	sorted := slices.Clone(images)
	slices.SortFunc(sorted, func(a, b Image) int {
		return cmp.Or(lists.TrueFirst(!a.Deprecated, !b.Deprecated), b.Created.Compare(a.Created),
			cmp.Compare(b.Name, a.Name), cmp.Compare(a.ID, b.ID), cmp.Compare(a.requirementsKey(), b.requirementsKey()))
	})
	seen := map[string]bool{}
	var kept []Image
	for _, i := range sorted {
		if key := i.requirementsKey(); !seen[key] {
			seen[key] = true
			kept = append(kept, i)
		}
	}
	slices.SortFunc(kept, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.requirementsKey(), b.requirementsKey()))
	})
	return lists.Of(kept, func(i Image) awsv1.AMI {
		return awsv1.AMI{ID: i.ID, Name: i.Name, Deprecated: i.Deprecated, Requirements: i.imageRequirements()}
	})
}

// imageRequirements are the image's needs with its architecture, sorted by the key's length and then by the key.
func (i Image) imageRequirements() []corev1.NodeSelectorRequirement {
	out := append(slices.Clone(i.Needs), corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable,
		Operator: corev1.NodeSelectorOpIn, Values: []string{i.Arch}})
	slices.SortFunc(out, func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// requirementsKey is the same for images with the same requirements.
func (i Image) requirementsKey() string { return fmt.Sprint(i.imageRequirements()) }

func imageTerms(c *awsv1.EC2NodeClass) string {
	var out []string
	for _, t := range c.Spec.AMISelectorTerms {
		switch {
		case t.Alias != "":
			out = append(out, "alias "+t.Alias)
		case t.IsEmpty():
			out = append(out, termText("", "", nil))
		case t.SSMParameter != "":
			out = append(out, "ssmParameter "+t.SSMParameter)
		case t.Owner != "":
			out = append(out, termText(t.ID, t.Name, t.Tags)+" of owner "+t.Owner)
		default:
			out = append(out, termText(t.ID, t.Name, t.Tags))
		}
	}
	return strings.Join(out, "; ")
}

// termText says a selector term in words.
func termText(id, name string, tags map[string]string) string {
	var parts []string
	if id != "" {
		parts = append(parts, "id "+id)
	}
	if name != "" {
		parts = append(parts, "name "+name)
	}
	for _, k := range sortedKeys(tags) {
		parts = append(parts, "tag "+k+"="+tags[k])
	}
	if len(parts) == 0 {
		return "an empty term, which selects nothing"
	}
	return strings.Join(parts, " and ")
}

// IsReady reports whether the class can be launched with now.
func IsReady(c *awsv1.EC2NodeClass) bool { return c.StatusConditions().IsTrue(v1.ConditionReady) }
