// Package nodeclass decides what the status of an EC2NodeClass and of a NodePool says, from what was found in AWS and in the
// cluster.
//
// It knows the conditions, reasons and orders of spec aws.md §1.5 to §1.11 and core.md §1.1. It refuses to know how things are
// found.
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

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
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

// Found is what was found for a class. A part whose look-up failed has an error, and the status keeps what it says about it.
type Found struct {
	Images         []Image
	Subnets        []Subnet
	SecurityGroups []awsv1.SecurityGroup
	Placement      *catalog.Placement          // nil when there is none like the class selects
	Reservations   []awsv1.CapacityReservation // active ones, their state not filled in
	Profile        string
	ServiceCIDR    string   // of the cluster; empty when unknown
	Region         string   // where it was looked for
	Verdict        *Verdict // of a rehearsed launch; nil when none was due

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

// Error is what to do about it.
func (e *ProfileError) Error() string { return e.Why }

// Err joins what could not be looked up. What the status tells the user to mend is no error: an alias that does not exist for
// the cluster's version, and a role that there is not.
func (f Found) Err() error {
	images, profile := f.ImagesErr, f.ProfileErr
	if _, ok := errors.AsType[*AliasError](images); ok {
		images = nil
	}
	if _, ok := errors.AsType[*ProfileError](profile); ok {
		profile = nil
	}
	return errors.Join(notTerm(images), notTerm(f.SubnetsErr), notTerm(f.GroupsErr), notTerm(f.ReservationsErr), f.PlacementErr, profile)
}

// Update brings the status of the class up to date. It changes the class given and reports whether anything changed.
func Update(c *awsv1.EC2NodeClass, f Found, now time.Time) bool {
	before := c.Status.DeepCopy()
	conditions := c.StatusConditions()
	conditions.Initialize()
	updateImages(c, f, now)
	updateSubnets(c, f, now)
	updateGroups(c, f, now)
	updateProfile(c, f, now)
	updateReservations(c, f, now)
	updatePlacement(c, f, now)
	validate(c, f, now)
	return !equal(before, &c.Status)
}

func updateImages(c *awsv1.EC2NodeClass, f Found, now time.Time) {
	conditions := c.StatusConditions()
	if alias, ok := errors.AsType[*AliasError](f.ImagesErr); ok {
		c.Status.AMIs = nil
		conditions.SetFalse(awsv1.ConditionAMIsReady, awsv1.ReasonUnsupportedAlias, alias.Why, now)
		return
	}
	if f.ImagesErr != nil {
		if unfound(c, awsv1.ConditionAMIsReady, awsv1.ReasonAMINotFound, f.ImagesErr, now) {
			c.Status.AMIs = nil
		}
		return
	}
	c.Status.AMIs = amis(f.Images)
	if len(c.Status.AMIs) == 0 {
		conditions.SetFalse(awsv1.ConditionAMIsReady, awsv1.ReasonAMINotFound,
			"no image in "+f.Region+" matches amiSelectorTerms ("+imageTerms(c)+"): check that it exists there and may be used by this account, or change the terms", now)
		return
	}
	conditions.SetTrue(awsv1.ConditionAMIsReady, now)
}

func updateSubnets(c *awsv1.EC2NodeClass, f Found, now time.Time) {
	if f.SubnetsErr != nil {
		if unfound(c, awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound, f.SubnetsErr, now) {
			c.Status.Subnets = nil
		}
		return
	}
	conditions := c.StatusConditions()
	c.Status.Subnets = nil
	found := slices.Clone(f.Subnets)
	slices.SortFunc(found, func(a, b Subnet) int { return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.ID, b.ID)) })
	for _, s := range found {
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	if len(found) == 0 {
		var terms []string
		for _, t := range c.Spec.SubnetSelectorTerms {
			terms = append(terms, term(t.ID, "", t.Tags))
		}
		conditions.SetFalse(awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound,
			"no subnet in "+f.Region+" matches subnetSelectorTerms ("+strings.Join(terms, "; ")+"): tag a subnet or change the terms", now)
		return
	}
	conditions.SetTrue(awsv1.ConditionSubnetsReady, now)
}

func updateGroups(c *awsv1.EC2NodeClass, f Found, now time.Time) {
	if f.GroupsErr != nil {
		if unfound(c, awsv1.ConditionSecurityGroupsReady, awsv1.ReasonSecurityGroupsNotFound, f.GroupsErr, now) {
			c.Status.SecurityGroups = nil
		}
		return
	}
	conditions := c.StatusConditions()
	found := slices.Clone(f.SecurityGroups)
	slices.SortFunc(found, func(a, b awsv1.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	c.Status.SecurityGroups = found
	if len(found) == 0 {
		var terms []string
		for _, t := range c.Spec.SecurityGroupSelectorTerms {
			terms = append(terms, term(t.ID, t.Name, t.Tags))
		}
		conditions.SetFalse(awsv1.ConditionSecurityGroupsReady, awsv1.ReasonSecurityGroupsNotFound,
			"no security group in "+f.Region+" matches securityGroupSelectorTerms ("+strings.Join(terms, "; ")+"): tag a group or change the terms", now)
		return
	}
	conditions.SetTrue(awsv1.ConditionSecurityGroupsReady, now)
}

func updateProfile(c *awsv1.EC2NodeClass, f Found, now time.Time) {
	conditions := c.StatusConditions()
	if refused, ok := errors.AsType[*ProfileError](f.ProfileErr); ok {
		conditions.SetFalse(awsv1.ConditionInstanceProfileReady, refused.Reason, refused.Why, now)
		return
	}
	if f.ProfileErr != nil {
		unfound(c, awsv1.ConditionInstanceProfileReady, ReasonRoleNotFound, f.ProfileErr, now)
		return
	}
	c.Status.InstanceProfile = f.Profile
	conditions.SetTrue(awsv1.ConditionInstanceProfileReady, now)
}

// validate is spec aws.md §1.7.
func validate(c *awsv1.EC2NodeClass, f Found, now time.Time) {
	conditions := c.StatusConditions()
	if c.ResolvedAMIFamily() == awsv1.AMIFamilyAL2023 && f.ServiceCIDR == "" {
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, awsv1.ReasonClusterCIDRResolutionFailed,
			"the service CIDR of the cluster is not known: eks:DescribeCluster must be allowed and give it", now)
		return
	}
	if waits := slices.Concat(dependencies(c, metav1.ConditionFalse), dependencies(c, metav1.ConditionUnknown)); len(waits) > 0 {
		first := waits[0]
		if first.Status == metav1.ConditionFalse {
			conditions.SetFalse(awsv1.ConditionValidationSucceeded, awsv1.ReasonDependenciesNotReady, first.Type+": "+first.Message, now)
		} else {
			conditions.SetUnknown(awsv1.ConditionValidationSucceeded, awsv1.ReasonDependenciesNotReady, first.Type+" is not known yet", now)
		}
		return
	}
	if key, found := awsv1.RestrictedTag(c.Spec.Tags); found {
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, awsv1.ReasonTagValidationFailed,
			"spec.tags may not hold "+key+": Joiner sets it", now)
		return
	}
	switch v := f.Verdict; {
	case v == nil || v.Reason == "" && !v.Unknown:
		conditions.SetTrue(awsv1.ConditionValidationSucceeded, now)
	case !v.Unknown:
		conditions.SetFalse(awsv1.ConditionValidationSucceeded, v.Reason, v.Message, now)
	}
}

// dependencies are the conditions with that status that validation waits for.
func dependencies(c *awsv1.EC2NodeClass, status metav1.ConditionStatus) []metav1.Condition {
	var out []metav1.Condition
	for _, t := range []string{awsv1.ConditionAMIsReady, awsv1.ConditionInstanceProfileReady, awsv1.ConditionSecurityGroupsReady, awsv1.ConditionSubnetsReady} {
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

// amis keeps one image for each set of requirements and sorts them newest first (spec aws.md §1.5, §1.10).
func amis(images []Image) []awsv1.AMI {
	sorted := slices.Clone(images)
	slices.SortFunc(sorted, func(a, b Image) int {
		return cmp.Or(before(!a.Deprecated, !b.Deprecated), b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name), cmp.Compare(a.ID, b.ID), cmp.Compare(a.key(), b.key()))
	})
	seen := map[string]bool{}
	var kept []Image
	for _, i := range sorted {
		if key := i.key(); !seen[key] {
			seen[key] = true
			kept = append(kept, i)
		}
	}
	slices.SortFunc(kept, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID), cmp.Compare(a.key(), b.key()))
	})
	var out []awsv1.AMI
	for _, i := range kept {
		out = append(out, awsv1.AMI{ID: i.ID, Name: i.Name, Deprecated: i.Deprecated, Requirements: i.requirements()})
	}
	return out
}

// requirements are the image's needs with its architecture, sorted by the key's length and then by the key.
func (i Image) requirements() []corev1.NodeSelectorRequirement {
	out := append(slices.Clone(i.Needs), corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{i.Arch}})
	slices.SortFunc(out, func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// key is the same for images with the same requirements.
func (i Image) key() string { return fmt.Sprint(i.requirements()) }

func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func imageTerms(c *awsv1.EC2NodeClass) string {
	var out []string
	for _, t := range c.Spec.AMISelectorTerms {
		switch {
		case t.Alias != "":
			out = append(out, "alias "+t.Alias)
		case t.SSMParameter != "":
			out = append(out, "ssmParameter "+t.SSMParameter)
		case t.Owner != "":
			out = append(out, term(t.ID, t.Name, t.Tags)+" of owner "+t.Owner)
		default:
			out = append(out, term(t.ID, t.Name, t.Tags))
		}
	}
	return strings.Join(out, "; ")
}

// term says a selector term in words.
func term(id, name string, tags map[string]string) string {
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
	return strings.Join(parts, " and ")
}

// Ready reports whether the class can be launched with now.
func Ready(c *awsv1.EC2NodeClass) bool { return c.StatusConditions().IsTrue(v1.ConditionReady) }
