package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// Codes of launch templates.
const (
	templateNameNotFound = "InvalidLaunchTemplateName.NotFoundException"
	templateIDNotFound   = "InvalidLaunchTemplateId.NotFound"
)

// ensureTemplates makes the templates of the order that do not exist. Their names are hashes of their content, so one
// that exists is right. A process remembers names for good: when a sweep deleted one meanwhile, CreateFleet says so.
func (f *Fleet) ensureTemplates(ctx context.Context, o launch.Order) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.templates == nil {
		f.templates = map[string]bool{}
	}
	for _, t := range o.Templates {
		if f.templates[t.Name] {
			continue
		}
		out, err := f.EC2.DescribeLaunchTemplates(ctx,
			&ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{t.Name}})
		if err != nil && awserrors.CodeOf(err) != templateNameNotFound {
			return fmt.Errorf("describe launch template %s: %w", t.Name, err)
		}
		if err != nil || len(out.LaunchTemplates) == 0 {
			if err := f.createTemplate(ctx, t); err != nil {
				return err
			}
		}
		f.templates[t.Name] = true
	}
	return nil
}

func (f *Fleet) createTemplate(ctx context.Context, t launch.Template) error {
	_, err := f.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(t.Name),
		LaunchTemplateData: TemplateData(t),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate,
			Tags: ec2Tags(t.Tags)}},
	})
	if err != nil && !awserrors.AlreadyExists(awserrors.CodeOf(err)) {
		return fmt.Errorf("create launch template %s: %w", t.Name, err)
	}
	return nil
}

// SweepTemplates deletes the launch templates that Joiner made for the cluster and that are older than age, and returns
// how many. One that is still wanted is made anew by the next launch. Those of a Karpenter beside us carry the same
// tags and are not ours: the name tells. One that cannot be deleted does not keep the others.
func (f *Fleet) SweepTemplates(ctx context.Context, age time.Duration) (int, error) {
	n, errs := 0, []error(nil)
	pages := ec2.NewDescribeLaunchTemplatesPaginator(f.EC2, &ec2.DescribeLaunchTemplatesInput{
		Filters:    []types.Filter{{Name: aws.String("tag:" + launch.TagClusterName), Values: []string{f.Cluster}}},
		MaxResults: aws.Int32(200)})
	for out, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return n, errors.Join(append(errs, fmt.Errorf("describe launch templates: %w", err))...)
		}
		for _, t := range out.LaunchTemplates {
			if !strings.HasPrefix(aws.ToString(t.LaunchTemplateName), launch.TemplatePrefix(f.Cluster)) ||
				f.Now().Sub(aws.ToTime(t.CreateTime)) < age {
				continue
			}
			_, err := f.EC2.DeleteLaunchTemplate(ctx,
				&ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId})
			if err != nil && !noTemplate(awserrors.CodeOf(err)) {
				errs = append(errs, fmt.Errorf("delete launch template %s: %w",
					aws.ToString(t.LaunchTemplateName), err))
				continue
			}
			n++
		}
	}
	return n, errors.Join(errs...)
}

// TemplateData is the content of a launch template in EC2's terms.
func TemplateData(t launch.Template) *types.RequestLaunchTemplateData {
	d := &types.RequestLaunchTemplateData{
		ImageId:    aws.String(t.ImageID),
		Monitoring: &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(t.Monitoring)},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointState(t.Metadata.HTTPEndpoint),
			HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6(t.Metadata.HTTPProtocol),
			HttpPutResponseHopLimit: aws.Int32(t.Metadata.HopLimit),
			HttpTokens:              types.LaunchTemplateHttpTokensState(t.Metadata.HTTPTokens),
			InstanceMetadataTags:    types.LaunchTemplateInstanceMetadataTagsStateDisabled,
		},
		Placement: &types.LaunchTemplatePlacementRequest{Tenancy: types.Tenancy(t.Tenancy), GroupId: nonZero(t.Group),
			PartitionNumber: nonZero(t.Partition)},
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: ec2Tags(t.Tags)}},
	}
	if t.UserData != "" {
		d.UserData = aws.String(t.UserData)
	}
	if t.InstanceProfile != "" {
		d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{
			Name: aws.String(t.InstanceProfile)}
	}
	if t.NestedVirtual != "" {
		d.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: types.NestedVirtualizationSpecification(t.NestedVirtual)}
	}
	if t.Enclave {
		d.EnclaveOptions = &types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)}
	}
	if len(t.SpotTags) > 0 {
		d.TagSpecifications = append(d.TagSpecifications,
			types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeSpotInstancesRequest,
				Tags: ec2Tags(t.SpotTags)})
	}
	if t.Reservation.Preference != "" {
		d.CapacityReservationSpecification = reservationTarget(t.Reservation)
	}
	if t.Reservation.Market != "" {
		d.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{
			MarketType: types.MarketType(t.Reservation.Market)}
	}
	for _, b := range t.BlockDevices {
		d.BlockDeviceMappings = append(d.BlockDeviceMappings, blockDevice(b))
	}
	for _, n := range t.NetworkInterfaces {
		d.NetworkInterfaces = append(d.NetworkInterfaces, networkInterface(n))
	}
	return d
}

func reservationTarget(r launch.ReservationSelection) *types.LaunchTemplateCapacityReservationSpecificationRequest {
	out := &types.LaunchTemplateCapacityReservationSpecificationRequest{
		CapacityReservationPreference: types.CapacityReservationPreference(r.Preference)}
	if r.ID != "" {
		out.CapacityReservationTarget = &types.CapacityReservationTarget{CapacityReservationId: aws.String(r.ID)}
	}
	return out
}

func blockDevice(b launch.BlockDevice) types.LaunchTemplateBlockDeviceMappingRequest {
	return types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(b.Device),
		Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
			VolumeSize: nonZero(b.SizeGiB), VolumeType: types.VolumeType(b.VolumeType), Iops: nonZero(b.IOPS),
			Throughput:               nonZero(b.Throughput),
			VolumeInitializationRate: nonZero(b.VolumeInitializationRate), Encrypted: b.Encrypted,
			DeleteOnTermination: b.DeleteOnTermination,
			KmsKeyId:            nonZero(b.KMSKeyID), SnapshotId: nonZero(b.SnapshotID)}}
}

func networkInterface(n launch.NetworkInterface) types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	out := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
		NetworkCardIndex: aws.Int32(n.CardIndex), DeviceIndex: aws.Int32(n.DeviceIndex), InterfaceType: nonZero(n.Type),
		Groups:                   n.SecurityGroupIDs,
		AssociatePublicIpAddress: n.AssociatePublicIP, Ipv4PrefixCount: nonZero(n.IPv4PrefixCount),
		Ipv6AddressCount: nonZero(n.IPv6AddressCount)}
	if n.PrimaryIPv6 {
		out.PrimaryIpv6 = aws.Bool(true)
	}
	if c := n.ConnectionTracking; c != nil {
		out.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: nonZero(c.TCPEstablishedSec), UdpStreamTimeout: nonZero(c.UDPStreamSec),
			UdpTimeout: nonZero(c.UDPSec)}
	}
	return out
}

// nonZero is nil for a zero value, which EC2 takes as not given.
func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// noTemplate reports whether the code says that a template was deleted, before or while EC2 looked it up.
func noTemplate(code string) bool { return code == templateNameNotFound || code == templateIDNotFound }

// forgetTemplates has the templates of the order looked for before the next request.
func (f *Fleet) forgetTemplates(o launch.Order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range o.Templates {
		delete(f.templates, t.Name)
	}
}
