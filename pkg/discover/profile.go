package discover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	awsv1 "joiner/pkg/api/aws/v1"
)

// profile returns the name of the class's instance profile and makes it when the class names a role (spec aws.md §5). Every call may
// be repeated and the process may die after any: the name follows from class and role, so what is there is found again. A
// changed role gives another profile, and old nodes keep theirs.
func (f *Finder) profile(ctx context.Context, c *awsv1.EC2NodeClass) (string, error) {
	if c.Spec.InstanceProfile != nil && *c.Spec.InstanceProfile != "" {
		return *c.Spec.InstanceProfile, nil
	}
	role := c.Spec.Role[strings.LastIndexByte(c.Spec.Role, '/')+1:]
	name := f.profileName(c, role)
	got, err := f.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	var have []types.Role
	switch {
	case isMissing(err):
		if err := f.createProfile(ctx, c, name); err != nil {
			return "", err
		}
	case err != nil:
		return "", fmt.Errorf("get instance profile %s: %w", name, err)
	default:
		have = got.InstanceProfile.Roles
	}
	for _, r := range have {
		if aws.ToString(r.RoleName) == role {
			return name, nil
		}
		_, err := f.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
			InstanceProfileName: aws.String(name), RoleName: r.RoleName})
		if err != nil && !isMissing(err) {
			return "", fmt.Errorf("remove role from instance profile %s: %w", name, err)
		}
	}
	_, err = f.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(role)})
	if err != nil && code(err) != "LimitExceeded" { // it holds a role already: a repeated call
		return "", fmt.Errorf("add role %s to instance profile %s: %w", role, name, err)
	}
	return name, nil
}

func (f *Finder) createProfile(ctx context.Context, c *awsv1.EC2NodeClass, name string) error {
	tags := []types.Tag{}
	add := func(k, v string) { tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(v)}) }
	for k, v := range c.Spec.Tags {
		add(k, v)
	}
	add(awsv1.TagClusterPrefix+f.Cluster, "owned")
	add(awsv1.TagClusterName, f.Cluster)
	add(awsv1.TagEC2NodeClass, c.Name)
	add("topology.kubernetes.io/region", f.Region)
	_, err := f.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name),
		Path: aws.String(f.profilePath(c)), Tags: tags})
	if err != nil && code(err) != "EntityAlreadyExists" {
		return fmt.Errorf("create instance profile %s: %w", name, err)
	}
	return nil
}

// DeleteProfiles deletes every instance profile under the class's path. May be repeated.
func (f *Finder) DeleteProfiles(ctx context.Context, c *awsv1.EC2NodeClass) error {
	pages := iam.NewListInstanceProfilesPaginator(f.IAM, &iam.ListInstanceProfilesInput{PathPrefix: aws.String(f.profilePath(c))})
	for n := 0; pages.HasMorePages() && n < maxPages; n++ {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list instance profiles of class %s: %w", c.Name, err)
		}
		for _, p := range page.InstanceProfiles {
			if err := f.deleteProfile(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Finder) deleteProfile(ctx context.Context, p types.InstanceProfile) error {
	name := aws.ToString(p.InstanceProfileName)
	for _, r := range p.Roles {
		_, err := f.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: p.InstanceProfileName, RoleName: r.RoleName})
		if err != nil && !isMissing(err) {
			return fmt.Errorf("remove role from instance profile %s: %w", name, err)
		}
	}
	_, err := f.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: p.InstanceProfileName})
	if err != nil && !isMissing(err) {
		return fmt.Errorf("delete instance profile %s: %w", name, err)
	}
	return nil
}

func (f *Finder) profilePath(c *awsv1.EC2NodeClass) string {
	return fmt.Sprintf("/karpenter/%s/%s/%s/", f.Region, f.Cluster, c.UID)
}

func (f *Finder) profileName(c *awsv1.EC2NodeClass, role string) string {
	sum := sha256.Sum256([]byte(f.Region + "\x00" + c.Name + "\x00" + string(c.UID) + "\x00" + role))
	return f.Cluster + "_" + hex.EncodeToString(sum[:8])
}
