// Package drift tells which nodes are not what their pool and class ask for any more.
//
// It knows the rules: hashes, requirements, instance types, images, security groups and subnets. It refuses to know
// what is done about it. A node that has expired counts as drifted where its pool asks for that. An upgrade of Joiner
// changes no verdict: hashes of different versions are not compared.
package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/requirements"
)

// typeKnownFor is the time for which a NodeClaim's instance type is not looked for: the catalog may be of another hour
// than the launch.
const typeKnownFor = time.Hour

// DriftChange is a change of a NodeClaim's condition Drifted.
type DriftChange struct {
	Claim   string // name of the NodeClaim
	Reason  string // empty: it has not drifted, or not any more
	Message string // a sentence that goes with Reason; empty without one
}

// DriftChanges are the changes that the conditions of the snapshot need, sorted as its claims are; types tells what a
// pool may launch.
func DriftChanges(s cluster.Snapshot, types func(cluster.Pool) []instancetypes.Type) []DriftChange {
	j := driftJudge{s: s, typeIn: overlays.FindType(types),
		instances: lists.Index(s.Instances, cluster.Instance.ProviderID)}
	var out []DriftChange
	for _, c := range s.Claims {
		if !c.Deleting.IsZero() || !c.Is(v1.ConditionLaunched) {
			continue
		}
		reason, message, sure := j.driftReason(c)
		now := c.Condition(v1.ConditionDrifted)
		if is := now.Status == "True"; sure && (is != (reason != "") || is && now.Reason != reason) {
			out = append(out, DriftChange{Claim: c.Name, Reason: reason, Message: message})
		}
	}
	return out
}

type driftJudge struct {
	s      cluster.Snapshot
	typeIn func(pool cluster.Pool, name string) (instancetypes.Type, bool)

	instances map[string]cluster.Instance // by provider id; those that are not known yet are missing
}

// driftReason says why a claim has drifted, the first reason that there is. What the NodePool asks for counts even
// while its class is gone or not ready; of the class nothing is sure then. Nothing is sure of a claim without its pool.
func (j driftJudge) driftReason(c cluster.Claim) (reason, message string, sure bool) {
	p, ok := j.s.PoolOf(c.Pool)
	if !ok {
		return "", "", false
	}
	if reason, message = j.poolDrift(c, p); reason != "" {
		return reason, message, true
	}
	key := c.Class
	if p.Rollout != nil {
		p.Revision = p.Rollout.ComparedWith(c)
		key = cluster.RevisionKey(c.Class, p.Revision)
	}
	class, found := j.s.ClassOf(key)
	if !found || !class.Ready {
		return "", "", false
	}
	return j.classDrift(c, p, class)
}

// poolDrift compares the claim with its NodePool: its age, its template, its requirements.
func (j driftJudge) poolDrift(c cluster.Claim, p cluster.Pool) (reason, message string) {
	if p.Disruption.ExpireGently && c.Expired(j.s.Now) {
		return "Expired", fmt.Sprintf("it is older than %s", c.ExpireAfter)
	}
	a := c.Annotations
	if a[v1.AnnotationNodePoolHashVersion] == v1.NodePoolHashVersion && a[v1.AnnotationNodePoolHash] != "" &&
		p.Hash != "" && a[v1.AnnotationNodePoolHash] != p.Hash {
		return "NodePoolDrifted", "the template of NodePool " + p.Name + " was changed since the node was made"
	}
	if bad := j.labelsOf(c, p).Refusals(p.Requirements, nil); len(bad) > 0 {
		return "RequirementsDrifted", fmt.Sprintf("NodePool %s requires %s", p.Name, bad[0])
	}
	return "", ""
}

// labelsOf returns the labels of the claim, with those that it lacks and its instance type has: labels that became
// known after it was launched. Labels that depend on more than the type are the claim's alone.
func (j driftJudge) labelsOf(c cluster.Claim, p cluster.Pool) requirements.Set {
	own := requirements.FromLabels(c.Labels)
	t, ok := j.typeIn(p, c.Labels[corev1.LabelInstanceTypeStable])
	if !ok {
		return own
	}
	var more []requirements.Requirement
	for _, r := range p.Requirements.All() {
		if _, has := c.Labels[r.Key]; has || !strings.HasPrefix(r.Key, instancetypes.LabelPrefix) {
			continue
		}
		of, _ := t.Requirements.Get(r.Key)
		if _, single := of.Single(); single {
			more = append(more, of)
		}
	}
	return own.And(more...)
}

// classDrift compares the claim with what its class would launch now, cheapest question first.
func (j driftJudge) classDrift(c cluster.Claim, p cluster.Pool, class instancetypes.Class) (reason, message string,
	sure bool) {
	if j.s.Now.Sub(c.Created) >= typeKnownFor && !j.stillOffered(c, p) {
		return "InstanceTypeNotFound", fmt.Sprintf("%s is not sold in %s any more",
			c.Labels[corev1.LabelInstanceTypeStable], c.Labels[corev1.LabelTopologyZone]), true
	}
	a := c.Annotations
	if a[awsv1.AnnotationHashVersion] == class.HashVersion && a[awsv1.AnnotationHash] != "" && class.Hash != "" &&
		a[awsv1.AnnotationHash] != class.Hash {
		return "NodeClassDrift", "EC2NodeClass " + c.Class + " was changed since the node was made", true
	}
	if reason, message, sure = j.imageDrift(c, p, class); reason != "" || !sure {
		return reason, message, sure
	}
	if reason, message, sure = j.networkDrift(c, class); reason != "" || !sure {
		return reason, message, sure
	}
	if id := c.Labels[instancetypes.LabelReservationID]; !class.OpenReservations && id != "" &&
		c.Labels[v1.LabelCapacityType] == instancetypes.Reserved &&
		!slices.ContainsFunc(class.Reservations, func(r instancetypes.Reservation) bool { return r.ID == id }) {
		return "CapacityReservationDrift", fmt.Sprintf(
			"EC2NodeClass %s does not select capacity reservation %s any more", class.Name, id), true
	}
	if g, id := class.Placement, c.Labels[instancetypes.LabelPlacement]; g != nil && g.Strategy != "" && id != "" &&
		id != g.ID {
		return "PlacementGroupDrift", fmt.Sprintf("it is in placement group %s, EC2NodeClass %s is at %s", id,
			class.Name, g.ID), true
	}
	return "", "", true
}

// Reasons that only EC2 can tell.
const (
	groupsDrifted = "SecurityGroupDrift"
	subnetDrifted = "SubnetDrift"
)

// networkDrift compares what the instance was put into with what the class finds. An instance that EC2 does not show
// keeps the verdict that it has.
func (j driftJudge) networkDrift(c cluster.Claim, class instancetypes.Class) (reason, message string, sure bool) {
	i, known := j.instances[c.ProviderID]
	if !known {
		now := c.Condition(v1.ConditionDrifted).Reason
		return "", "", now != groupsDrifted && now != subnetDrifted
	}
	if len(i.SecurityGroups) > 0 && len(class.SecurityGroups) > 0 &&
		!slices.Equal(i.SecurityGroups, class.SecurityGroups) {
		return groupsDrifted, fmt.Sprintf("it has the security groups %s, EC2NodeClass %s is at %s",
			strings.Join(i.SecurityGroups, ", "), class.Name, strings.Join(class.SecurityGroups, ", ")), true
	}
	if i.SubnetID != "" && len(class.Subnets) > 0 &&
		!slices.ContainsFunc(class.Subnets, func(s instancetypes.Subnet) bool { return s.ID == i.SubnetID }) {
		return subnetDrifted, fmt.Sprintf("it is in %s, which EC2NodeClass %s does not find any more", i.SubnetID,
			class.Name), true
	}
	return "", "", true
}

// imageDrift compares the claim's image with what the class would launch its instance type with now.
func (j driftJudge) imageDrift(c cluster.Claim, p cluster.Pool, class instancetypes.Class) (reason, message string,
	sure bool) {
	t, ok := j.typeIn(p, c.Labels[corev1.LabelInstanceTypeStable])
	if !ok || c.ImageID == "" || t.ImageID == "" {
		return "", "", c.ImageID == "" || len(class.Images) == 0
	}
	if c.ImageID != t.ImageID {
		return "AMIDrift", fmt.Sprintf("it runs %s, EC2NodeClass %s is at %s", c.ImageID, class.Name, t.ImageID), true
	}
	return "", "", true
}

// stillOffered reports whether the claim's type is offered where and as the claim has it, to be had or not. Reserved
// capacity may have become on-demand capacity.
func (j driftJudge) stillOffered(c cluster.Claim, p cluster.Pool) bool {
	t, ok := j.typeIn(p, c.Labels[corev1.LabelInstanceTypeStable])
	if !ok {
		return false
	}
	return slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool {
		way := o.CapacityType == c.Labels[v1.LabelCapacityType] ||
			c.Labels[v1.LabelCapacityType] == instancetypes.Reserved && o.CapacityType == instancetypes.OnDemand
		return way && o.Zone == c.Labels[corev1.LabelTopologyZone]
	})
}
