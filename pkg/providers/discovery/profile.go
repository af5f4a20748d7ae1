package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclass"
)

// ensureProfile returns the name of the class's instance profile and makes it when the class names a role. Every call
// may be repeated and the process may die after any: the name follows from class and role, so what is there is found
// again. A changed role gives another profile, and old nodes keep theirs. What the user has to mend is a
// *nodeclass.ProfileError.
func (r *ClassResolver) ensureProfile(ctx context.Context, c *awsv1.EC2NodeClass) (string, error) {
	if c.Spec.InstanceProfile != nil && *c.Spec.InstanceProfile != "" {
		return *c.Spec.InstanceProfile, nil
	}
	if r.Isolated {
		return "", &nodeclass.ProfileError{Reason: nodeclass.ReasonNoProfileInIsolatedVPC,
			Why: "the setting isolatedVPC rules out IAM calls: give spec.instanceProfile instead of spec.role"}
	}
	role := c.Spec.Role[strings.LastIndexByte(c.Spec.Role, '/')+1:]
	name := ProfileName(r.Cluster, r.Region, c.Name, string(c.UID), role)
	if kept, err := r.keepsProfile(ctx, c, name, role); kept || err != nil {
		return c.Status.InstanceProfile, err
	}
	have, ok, err := r.getProfile(ctx, name)
	if err != nil {
		return "", err
	}
	if !ok {
		if err := r.createProfile(ctx, c, name); err != nil {
			return "", err
		}
	}
	for _, iamRole := range have.Roles {
		if aws.ToString(iamRole.RoleName) == role {
			return name, nil
		}
		if err := r.removeRole(ctx, name, iamRole); err != nil {
			return "", err
		}
	}
	return name, r.addRole(ctx, name, role)
}

// keepsProfile reports whether the status names another profile of this class that has the role: one that Karpenter
// made before the cluster moved here.
func (r *ClassResolver) keepsProfile(ctx context.Context, c *awsv1.EC2NodeClass, name, role string) (bool, error) {
	if c.Status.InstanceProfile == "" || c.Status.InstanceProfile == name {
		return false, nil
	}
	have, ok, err := r.getProfile(ctx, c.Status.InstanceProfile)
	if !ok || err != nil || aws.ToString(have.Path) != r.profilePath(c) {
		return false, err
	}
	return slices.ContainsFunc(have.Roles, func(iamRole types.Role) bool {
		return aws.ToString(iamRole.RoleName) == role
	}), nil
}

func (r *ClassResolver) getProfile(ctx context.Context, name string) (types.InstanceProfile, bool, error) {
	out, err := r.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	switch {
	case awserrors.IsMissing(err):
		return types.InstanceProfile{}, false, nil
	case err != nil:
		return types.InstanceProfile{}, false, fmt.Errorf("get instance profile %s: %w", name, err)
	case out.InstanceProfile == nil:
		return types.InstanceProfile{}, false, errors.New("get instance profile " + name + ": the answer is empty")
	}
	return *out.InstanceProfile, true, nil
}

func (r *ClassResolver) addRole(ctx context.Context, name, role string) error {
	_, err := r.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String(name), RoleName: aws.String(role)})
	switch {
	case err == nil, awserrors.CodeOf(err) == "LimitExceeded": // it holds a role already: a repeated call
		return nil
	case awserrors.IsMissing(err) && strings.Contains(strings.ToLower(err.Error()), "role"):
		return &nodeclass.ProfileError{Reason: nodeclass.ReasonRoleNotFound,
			Why: "there is no IAM role " + role + ": create it or change spec.role"}
	case awserrors.CodeOf(err) == "AccessDenied":
		return &nodeclass.ProfileError{Reason: nodeclass.ReasonRoleNotAllowed,
			Why: fmt.Sprintf("IAM does not let refresh give role %s to an instance profile: name the stack's node role in spec.role, or give spec.instanceProfile: %v", role, err)}
	}
	return fmt.Errorf("add role %s to instance profile %s: %w", role, name, err)
}

func (r *ClassResolver) removeRole(ctx context.Context, name string, role types.Role) error {
	_, err := r.IAM.RemoveRoleFromInstanceProfile(ctx,
		&iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: role.RoleName})
	if err != nil && !awserrors.IsMissing(err) {
		return fmt.Errorf("remove role from instance profile %s: %w", name, err)
	}
	return nil
}

func (r *ClassResolver) createProfile(ctx context.Context, c *awsv1.EC2NodeClass, name string) error {
	want := maps.Clone(c.Spec.Tags)
	if want == nil {
		want = map[string]string{}
	}
	want[awsv1.TagClusterPrefix+r.Cluster] = "owned"
	want[awsv1.TagClusterName] = r.Cluster
	want[awsv1.TagEC2NodeClass] = c.Name
	want[corev1.LabelTopologyRegion] = r.Region
	tags := lists.Of(slices.Sorted(maps.Keys(want)),
		func(k string) types.Tag { return types.Tag{Key: aws.String(k), Value: aws.String(want[k])} })
	_, err := r.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name),
		Path: aws.String(r.profilePath(c)), Tags: tags})
	if err != nil && !awserrors.AlreadyExists(awserrors.CodeOf(err)) {
		return fmt.Errorf("create instance profile %s: %w", name, err)
	}
	return nil
}

// ListProfiles lists the instance profiles that were made for classes of the cluster, those of deleted classes too. It
// may be repeated.
func (r *ClassResolver) ListProfiles(ctx context.Context) ([]nodeclass.Profile, error) {
	if r.Isolated {
		return nil, nil
	}
	var out []nodeclass.Profile
	pages := iam.NewListInstanceProfilesPaginator(r.IAM,
		&iam.ListInstanceProfilesInput{PathPrefix: aws.String(r.clusterPath())})
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("list instance profiles: %w", err)
		}
		for _, p := range page.InstanceProfiles {
			uid := strings.Trim(strings.TrimPrefix(aws.ToString(p.Path), r.clusterPath()), "/")
			out = append(out, nodeclass.Profile{Name: aws.ToString(p.InstanceProfileName), ClassUID: uid,
				Created: aws.ToTime(p.CreateDate)})
		}
	}
	return out, nil
}

// DeleteProfile deletes an instance profile that was made for a class. One that is gone is no error. May be repeated.
func (r *ClassResolver) DeleteProfile(ctx context.Context, name string) error {
	p, found, err := r.getProfile(ctx, name)
	if err != nil || !found {
		return err
	}
	return r.deleteProfile(ctx, p)
}

// deleteProfiles deletes every instance profile under the path. One that cannot be deleted does not keep the others.
// May be repeated.
func (r *ClassResolver) deleteProfiles(ctx context.Context, path string) error {
	if r.Isolated {
		return nil
	}
	pages := iam.NewListInstanceProfilesPaginator(r.IAM,
		&iam.ListInstanceProfilesInput{PathPrefix: aws.String(path)})
	var errs []error
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list instance profiles under %s: %w", path, err))...)
		}
		for _, p := range page.InstanceProfiles {
			errs = append(errs, r.deleteProfile(ctx, p))
		}
	}
	return errors.Join(errs...)
}

func (r *ClassResolver) deleteProfile(ctx context.Context, p types.InstanceProfile) error {
	name := aws.ToString(p.InstanceProfileName)
	for _, role := range p.Roles {
		if err := r.removeRole(ctx, name, role); err != nil {
			return err
		}
	}
	_, err := r.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{
		InstanceProfileName: p.InstanceProfileName})
	if err != nil && !awserrors.IsMissing(err) {
		return fmt.Errorf("delete instance profile %s: %w", name, err)
	}
	return nil
}

func (r *ClassResolver) profilePath(c *awsv1.EC2NodeClass) string {
	return r.clusterPath() + string(c.UID) + "/"
}

func (r *ClassResolver) clusterPath() string {
	return fmt.Sprintf("/karpenter/%s/%s/", r.Region, r.Cluster)
}

// ProfileName is the name of the instance profile that is made for a class with a role. Another role gives another
// name.
func ProfileName(cluster, region, class, classUID, role string) string {
	sum := sha256.Sum256([]byte(region + "\x00" + class + "\x00" + classUID + "\x00" + role))
	return cluster + "_" + hex.EncodeToString(sum[:8])
}
