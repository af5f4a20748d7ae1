package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// DryRun asks EC2 with dry runs whether it would take the order. It makes the order's launch template, which EC2 wants
// to see, and nothing else. The error is a *launch.RefusedError when EC2 answered no; any other error means that it
// could not be asked. It may be repeated.
func (f *Fleet) DryRun(ctx context.Context, o launch.Order) error {
	if err := f.ensureTemplates(ctx, o); err != nil {
		return dryRunAnswer("CreateLaunchTemplate", err)
	}
	in := fleetInput(onePerPool(o), "")
	in.ClientToken, in.DryRun = nil, aws.Bool(true)
	_, err := f.EC2.CreateFleet(ctx, in)
	if awserrors.CodeOf(err) == templateNameNotFound { // a sweep was quicker than we
		f.forgetTemplates(o)
		return fmt.Errorf("rehearse create fleet: %w", err)
	}
	if err := dryRunAnswer("CreateFleet", err); err != nil {
		return err
	}
	return f.rehearseRun(ctx, o)
}

// onePerPool is the order with one subnet for each type in each zone, the first. EC2 refuses a fleet with two, as
// InvalidFleetConfig: "The fleet configuration contains duplicate instance pools".
func onePerPool(o launch.Order) launch.Order {
	seen := map[instancetypes.OfferingKey]bool{}
	o.Templates = lists.Of(o.Templates, func(t launch.Template) launch.Template {
		t.Overrides = lists.Where(t.Overrides, func(v launch.Override) bool {
			again := seen[v.OfferingKey]
			seen[v.OfferingKey] = true
			return !again
		})
		return t
	})
	return o
}

// rehearseRun asks for one subnet after the other, until one would do. The first answer tells.
func (f *Fleet) rehearseRun(ctx context.Context, o launch.Order) error {
	var first error
	for _, t := range o.Templates {
		for _, v := range t.Overrides {
			in, err := runInput(o, t, v)
			if err != nil {
				return fmt.Errorf("rehearse RunInstances: %w", err)
			}
			_, err = f.EC2.RunInstances(ctx, in)
			err = dryRunAnswer("RunInstances", err)
			if err == nil {
				return nil
			}
			if _, refused := errors.AsType[*launch.RefusedError](err); !refused {
				return err
			}
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// runInput is the dry run of launching an override with its template. Everything that the template says stands in the
// request too: policies look at the request, such as at its MetadataOptions. It is the content of the template itself,
// whose fields RunInstances has under the same names.
func runInput(o launch.Order, t launch.Template, v launch.Override) (*ec2.RunInstancesInput, error) {
	data := TemplateData(t)
	data.TagSpecifications = append(data.TagSpecifications,
		types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeInstance,
			Tags: ec2Tags(o.InstanceTags)},
		types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeVolume, Tags: ec2Tags(o.Tags)})
	if len(data.NetworkInterfaces) == 0 {
		data.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			{DeviceIndex: aws.Int32(0)}}
	}
	for i := range data.NetworkInterfaces {
		data.NetworkInterfaces[i].SubnetId = aws.String(v.SubnetID)
	}
	content, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode launch template: %w", err)
	}
	in := &ec2.RunInstancesInput{}
	if err := json.Unmarshal(content, in); err != nil {
		return nil, fmt.Errorf("take over launch template: %w", err)
	}
	in.DryRun, in.MinCount, in.MaxCount = aws.Bool(true), aws.Int32(1), aws.Int32(1)
	in.InstanceType = types.InstanceType(v.Type)
	if v.ImageID != "" {
		in.ImageId = aws.String(v.ImageID)
	}
	in.LaunchTemplate = &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(t.Name),
		Version: aws.String("$Latest")}
	return in, nil
}

// dryRunAnswer returns the meaning of a rehearsal's error: nothing, no, or that there was no answer.
func dryRunAnswer(call string, err error) error {
	code := awserrors.CodeOf(err)
	switch {
	case err == nil || code == awserrors.WouldSucceed:
		return nil
	case code == "" || awserrors.IsThrottled(code) || httpStatus(err) >= http.StatusInternalServerError:
		return fmt.Errorf("rehearse %s: %w", call, err)
	}
	return &launch.RefusedError{Call: call, Code: code, Message: awserrors.MessageOf(err)}
}

// httpStatus is the HTTP status of the answer, 0 without one.
func httpStatus(err error) int {
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}
