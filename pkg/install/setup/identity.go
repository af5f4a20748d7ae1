package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// Leaving are node roles that an update of the stack is about to delete.
type Leaving struct {
	Roles []string // names
	// ProfileOf is the name of the instance profile that is made for a class with a role.
	ProfileOf func(class, classUID, role string) string
}

// CheckLeavingRoles refuses an update that would delete a role by which nodes belong to the cluster. CloudFormation
// deletes what an update leaves out only after everything else has succeeded, so that nothing has happened yet.
func (s *Setup) CheckLeavingRoles(ctx context.Context) error {
	if len(s.Leaving.Roles) == 0 {
		return nil
	}
	if err := s.reachCluster(ctx); err != nil {
		return err
	}
	// by class, the names of instance profiles and what is true for a claim without
	held := map[string]map[string]bool{}
	err := s.Cluster.List(ctx, classes, func(o *unstructured.Unstructured) error {
		held[o.GetName()] = s.Leaving.profilesOf(o)
		return nil
	})
	if err != nil {
		return err
	}
	var left []string
	err = s.Cluster.List(ctx, claims, func(o *unstructured.Unstructured) error {
		class, _, _ := unstructured.NestedString(o.Object, "spec", "nodeClassRef", "name")
		if isOurClaim(o) && held[class][o.GetAnnotations()[awsv1.AnnotationInstanceProfile]] {
			left = append(left, o.GetName())
		}
		return nil
	})
	if err != nil || len(left) == 0 {
		return err
	}
	const named = 10
	return fmt.Errorf("the update deletes the node role %s, by which %d nodes belong to the cluster: %s. Keep nodeRole, windowsNodes and mode as they were until these "+
		"nodes are gone, or deploy onDelete=keep alone first: then the role stays", strings.Join(s.Leaving.Roles, " and "),
		len(left), strings.Join(left[:min(named, len(left))], ", "))
}

// profilesOf are the instance profiles of a class that hold one of the roles. The empty name stands for a claim that
// does not say which it has: that of its class today.
func (l Leaving) profilesOf(class *unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	role, _, _ := unstructured.NestedString(class.Object, "spec", "role")
	role = role[strings.LastIndexByte(role, '/')+1:]
	profile, _, _ := unstructured.NestedString(class.Object, "spec", "instanceProfile")
	for _, r := range l.Roles {
		out[r] = true // the stack gives a role a profile of its name
		out[l.ProfileOf(class.GetName(), string(class.GetUID()), r)] = true
	}
	out[""] = slices.Contains(l.Roles, role) || slices.Contains(l.Roles, profile)
	return out
}
