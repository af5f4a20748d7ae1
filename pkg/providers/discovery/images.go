package discovery

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclass"
)

const imagePage = 1000

// findImages finds the AMIs of a class. An alias that does not go with the cluster's version is a
// *nodeclass.AliasError.
func (r *ClassResolver) findImages(ctx context.Context, c *awsv1.EC2NodeClass) ([]nodeclass.Image, error) {
	if alias, ok := c.Alias(); ok {
		return r.aliasImages(ctx, alias)
	}
	var out []nodeclass.Image
	queries, err := r.imageQueries(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, q := range queries {
		found, err := r.describeImages(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// aliasImages reads the parameters of an alias. One that does not exist is a variant that was not published; any other
// error ends the look-up, so that a throttled call never looks as if an image had vanished.
func (r *ClassResolver) aliasImages(ctx context.Context, alias awsv1.Alias) ([]nodeclass.Image, error) {
	parameters, err := nodeclass.ImageParameters(alias, r.Version)
	if err != nil {
		return nil, err
	}
	needs := map[string][][]corev1.NodeSelectorRequirement{}
	var ids []string
	for _, p := range parameters {
		id, err := r.readParameter(ctx, p.Path)
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue
		}
		if len(needs[id]) == 0 {
			ids = append(ids, id)
		}
		needs[id] = append(needs[id], p.Variants...)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := r.describeImages(ctx, ec2.DescribeImagesInput{Filters: []types.Filter{ec2Filter("image-id", ids...)}})
	if err != nil {
		return nil, err
	}
	var out []nodeclass.Image
	for _, i := range found {
		for _, n := range needs[i.ID] {
			i.Needs = n
			out = append(out, i)
		}
	}
	return out, nil
}

// imageQueries turns the terms into DescribeImages calls; ids and parameters share one.
func (r *ClassResolver) imageQueries(ctx context.Context, c *awsv1.EC2NodeClass) ([]ec2.DescribeImagesInput, error) {
	var ids []string
	var out []ec2.DescribeImagesInput
	for _, t := range c.Spec.AMISelectorTerms {
		switch {
		case t.IsEmpty():
		case t.ID != "":
			ids = append(ids, t.ID)
		case t.SSMParameter != "":
			id, err := r.readParameter(ctx, t.SSMParameter)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(id, "ami-") {
				ids = append(ids, id)
			}
		default:
			q := ec2.DescribeImagesInput{Filters: tagFilters(t.Tags)}
			if t.Name != "" {
				q.Filters = append(q.Filters, ec2Filter("name", t.Name))
				q.Owners = []string{"self", "amazon"}
			}
			if t.Owner != "" {
				q.Owners = []string{t.Owner}
			}
			out = append(out, q)
		}
	}
	if len(ids) > 0 {
		out = append(out, ec2.DescribeImagesInput{Filters: []types.Filter{ec2Filter("image-id", ids...)}})
	}
	return out, nil
}

func (r *ClassResolver) describeImages(ctx context.Context, q ec2.DescribeImagesInput) ([]nodeclass.Image, error) {
	q.Filters = append(q.Filters, ec2Filter(filterState, "available"))
	q.IncludeDeprecated, q.MaxResults = aws.Bool(true), aws.Int32(imagePage)
	var out []nodeclass.Image
	pages := ec2.NewDescribeImagesPaginator(r.EC2, &q)
	for page, err := range paging.Bounded(ctx, maxPages, pages, onlyFiltered) {
		if awserrors.IsMissing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, wrapLookup("describe images", err)
		}
		for _, i := range page.Images {
			if image, ok := r.nodeImages(i); ok {
				out = append(out, image)
			}
		}
	}
	return out, nil
}

// nodeImages leaves out architectures that no node has.
func (r *ClassResolver) nodeImages(i types.Image) (nodeclass.Image, bool) {
	arch := map[types.ArchitectureValues]string{types.ArchitectureValuesX8664: "amd64",
		types.ArchitectureValuesArm64: "arm64"}[i.Architecture]
	if arch == "" {
		return nodeclass.Image{}, false
	}
	out := nodeclass.Image{ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Arch: arch}
	// an image without a date counts as the oldest
	out.Created, _ = time.Parse(time.RFC3339, aws.ToString(i.CreationDate))
	if d, err := time.Parse(time.RFC3339, aws.ToString(i.DeprecationTime)); err == nil {
		out.Deprecated = !d.After(r.Now())
	}
	return out, true
}

// readParameter reads an SSM parameter; "" when there is none.
func (r *ClassResolver) readParameter(ctx context.Context, name string) (string, error) {
	out, err := r.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	switch {
	case awserrors.IsMissing(err):
		return "", nil
	case err != nil:
		return "", wrapLookup("get parameter "+name, err)
	case out.Parameter == nil:
		return "", errors.New("get parameter " + name + ": the answer is empty")
	}
	return aws.ToString(out.Parameter.Value), nil
}
