package awsemulator

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// templates are EC2's launch templates.
type templates struct {
	*account
	lts  map[string]*template // by id
	most int                  // 0: any number
}

// LimitTemplates gives the account a quota of launch templates; 0 for none.
func (c *templates) LimitTemplates(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
}

// template is a launch template; it has one version, since nothing here makes a second.
type template struct {
	id, name, by string
	made         time.Time
	tags         map[string]string
	data         templateData
}

// LaunchTemplates are the names of all launch templates, sorted.
func (c *Cloud) LaunchTemplates() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.lts {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return names
}

// templateData is what a template says of the instances made from it. Its tags serve both ways: `query` for the
// request, `xml` for DescribeLaunchTemplateVersions.
type templateData struct {
	ImageID        string              `query:"ImageId" xml:"imageId,omitempty"`
	InstanceType   string              `xml:"instanceType,omitempty"`
	UserData       string              `xml:"userData,omitempty"`
	KeyName        string              `xml:"keyName,omitempty"`
	EBSOptimized   *bool               `query:"EbsOptimized" xml:"ebsOptimized"`
	Profile        *profileRef         `query:"IamInstanceProfile" xml:"iamInstanceProfile"`
	Devices        []blockDevice       `query:"BlockDeviceMapping" xml:"blockDeviceMappingSet>item"`
	Interfaces     []networkInterface  `query:"NetworkInterface" xml:"networkInterfaceSet>item"`
	Groups         []string            `query:"SecurityGroupId" xml:"securityGroupIdSet>item"`
	GroupNames     []string            `query:"SecurityGroup" xml:"securityGroupSet>item"`
	Metadata       *metadataOptions    `query:"MetadataOptions" xml:"metadataOptions"`
	Monitoring     *enabled            `xml:"monitoring"`
	CPU            *cpuOptions         `query:"CpuOptions" xml:"cpuOptions"`
	Enclave        *enabled            `query:"EnclaveOptions" xml:"enclaveOptions"`
	Placement      *placement          `xml:"placement"`
	Market         *marketOptions      `query:"InstanceMarketOptions" xml:"instanceMarketOptions"`
	Reservation    *reservationOptions `query:"CapacityReservationSpecification" xml:"capacityReservationSpecification"`
	Specifications []tagSpecification  `query:"TagSpecification" xml:"tagSpecificationSet>item"`
}

type profileRef struct {
	ARN  string `query:"Arn" xml:"arn,omitempty"`
	Name string `xml:"name,omitempty"`
}

type enabled struct {
	Enabled bool `xml:"enabled"`
}

type blockDevice struct {
	DeviceName  string `xml:"deviceName"`
	VirtualName string `xml:"virtualName,omitempty"`
	NoDevice    string `xml:"noDevice,omitempty"`
	EBS         *ebs   `query:"Ebs" xml:"ebs"`
}

type ebs struct {
	DeleteOnTermination      *bool  `xml:"deleteOnTermination"`
	Encrypted                *bool  `xml:"encrypted"`
	Iops                     *int   `xml:"iops"`
	KmsKeyID                 string `query:"KmsKeyId" xml:"kmsKeyId,omitempty"`
	SnapshotID               string `query:"SnapshotId" xml:"snapshotId,omitempty"`
	Throughput               *int   `xml:"throughput"`
	VolumeInitializationRate *int   `xml:"volumeInitializationRate"`
	VolumeSize               *int   `xml:"volumeSize"`
	VolumeType               string `xml:"volumeType,omitempty"`
}

type networkInterface struct {
	DeviceIndex              *int                `xml:"deviceIndex"`
	NetworkCardIndex         *int                `xml:"networkCardIndex"`
	InterfaceType            string              `xml:"interfaceType,omitempty"`
	SubnetID                 string              `query:"SubnetId" xml:"subnetId,omitempty"`
	Groups                   []string            `query:"SecurityGroupId" xml:"groupSet>groupId"`
	AssociatePublicIPAddress *bool               `query:"AssociatePublicIpAddress" xml:"associatePublicIpAddress"`
	DeleteOnTermination      *bool               `xml:"deleteOnTermination"`
	Description              string              `xml:"description,omitempty"`
	Ipv4PrefixCount          *int                `xml:"ipv4PrefixCount"`
	Ipv6PrefixCount          *int                `xml:"ipv6PrefixCount"`
	Ipv6AddressCount         *int                `xml:"ipv6AddressCount"`
	PrimaryIpv6              *bool               `xml:"primaryIpv6"`
	ConnectionTracking       *connectionTracking `query:"ConnectionTrackingSpecification" xml:"connectionTrackingSpecification"`
}

type connectionTracking struct {
	TCPEstablishedTimeout *int `query:"TcpEstablishedTimeout" xml:"tcpEstablishedTimeout"`
	UDPStreamTimeout      *int `query:"UdpStreamTimeout" xml:"udpStreamTimeout"`
	UDPTimeout            *int `query:"UdpTimeout" xml:"udpTimeout"`
}

type metadataOptions struct {
	HTTPEndpoint         string `query:"HttpEndpoint" xml:"httpEndpoint,omitempty"`
	HTTPProtocolIpv6     string `query:"HttpProtocolIpv6" xml:"httpProtocolIpv6,omitempty"`
	HTTPHopLimit         *int   `query:"HttpPutResponseHopLimit" xml:"httpPutResponseHopLimit"`
	HTTPTokens           string `query:"HttpTokens" xml:"httpTokens,omitempty"`
	InstanceMetadataTags string `xml:"instanceMetadataTags,omitempty"`
}

type cpuOptions struct {
	CoreCount            *int   `xml:"coreCount"`
	ThreadsPerCore       *int   `xml:"threadsPerCore"`
	AmdSevSnp            string `xml:"amdSevSnp,omitempty"`
	NestedVirtualization string `xml:"nestedVirtualization,omitempty"`
}

type placement struct {
	AvailabilityZone string `xml:"availabilityZone,omitempty"`
	GroupID          string `query:"GroupId" xml:"groupId,omitempty"`
	GroupName        string `xml:"groupName,omitempty"`
	PartitionNumber  *int   `xml:"partitionNumber"`
	Tenancy          string `xml:"tenancy,omitempty"`
}

type marketOptions struct {
	MarketType string `xml:"marketType,omitempty"`
}

type reservationOptions struct {
	Preference string             `query:"CapacityReservationPreference" xml:"capacityReservationPreference,omitempty"`
	Target     *reservationTarget `query:"CapacityReservationTarget" xml:"capacityReservationTarget"`
}

type reservationTarget struct {
	ID string `query:"CapacityReservationId" xml:"capacityReservationId,omitempty"`
}

type tagSpecification struct {
	ResourceType string   `xml:"resourceType"`
	Tag          []xmlTag `xml:"tagSet>item"`
}

// tagsFor collects the tags for a kind of resource; later specifications win.
func tagsFor(kind string, lists ...[]tagSpecification) map[string]string {
	out := map[string]string{}
	for _, list := range lists {
		for _, s := range list {
			if s.ResourceType != kind {
				continue
			}
			for _, t := range s.Tag {
				out[t.Key] = t.Value
			}
		}
	}
	return out
}

// userDataLimit is EC2's limit for user data before base64, in bytes.
const userDataLimit = 16384

func checkUserData(encoded string) error {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return wire.Fail(400, "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(text) > userDataLimit {
		return wire.Fail(400, "InvalidUserData.Malformed", "User data is limited to %d bytes", userDataLimit)
	}
	return nil
}

type createTemplateInput struct {
	LaunchTemplateName, ClientToken, VersionDescription string
	LaunchTemplateData                                  *templateData
	TagSpecification                                    []tagSpecification
}

type xmlTemplate struct {
	ID      string    `xml:"launchTemplateId"`
	Name    string    `xml:"launchTemplateName"`
	Made    wire.Time `xml:"createTime"`
	By      string    `xml:"createdBy"`
	Default int       `xml:"defaultVersionNumber"`
	Latest  int       `xml:"latestVersionNumber"`
	Tags    []xmlTag  `xml:"tagSet>item"`
}

type oneTemplate struct {
	Template xmlTemplate `xml:"launchTemplate"`
}

func (t *template) toXML() xmlTemplate {
	return xmlTemplate{t.id, t.name, wire.Time{Time: t.made}, t.by, 1, 1, xmlTags(t.tags)}
}

func (c *templates) createLaunchTemplate(r *call, in *createTemplateInput) (any, error) {
	if len(in.LaunchTemplateName) < 3 || len(in.LaunchTemplateName) > 128 {
		return nil, wire.Fail(400, "InvalidLaunchTemplateName.MalformedException",
			"A launch template name must be between 3 and 128 characters")
	}
	if in.LaunchTemplateData == nil {
		return nil, wire.Fail(400, "MissingParameter", "The request must contain the parameter LaunchTemplateData")
	}
	if err := checkUserData(in.LaunchTemplateData.UserData); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.templateByName(in.LaunchTemplateName) != nil {
		return nil, wire.Fail(400, "InvalidLaunchTemplateName.AlreadyExistsException",
			"Launch template name already in use.")
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	if c.most > 0 && len(c.lts) >= c.most {
		return nil, wire.Fail(400, "MaxTemplateLimitExceeded", "Account has already reached max permitted templates")
	}
	t := &template{
		id: newID("lt"), name: in.LaunchTemplateName, by: r.caller.ARN(), made: time.Now(),
		tags: tagsFor("launch-template", in.TagSpecification), data: *in.LaunchTemplateData,
	}
	c.lts[t.id] = t
	return oneTemplate{t.toXML()}, nil
}

func (c *templates) templateByName(name string) *template {
	for _, t := range c.lts {
		if t.name == name {
			return t
		}
	}
	return nil
}

// findTemplate finds a template by id or by name, with EC2's code for each. The account is locked.
func (c *templates) findTemplate(id, name string) (*template, error) {
	switch {
	case id != "" && name != "":
		return nil, wire.Fail(400, "InvalidParameterCombination",
			"Specify either the launch template ID or the launch template name, but not both.")
	case id != "":
		if t := c.lts[id]; t != nil {
			return t, nil
		}
		return nil, wire.Fail(400, "InvalidLaunchTemplateId.NotFound",
			"The specified launch template, with template ID %s, does not exist.", id)
	case name != "":
		if t := c.templateByName(name); t != nil {
			return t, nil
		}
		return nil, wire.Fail(400, "InvalidLaunchTemplateName.NotFoundException",
			"The specified launch template, with template name %s, does not exist.", name)
	}
	return nil, wire.Fail(400, "MissingParameter",
		"Either the launch template ID or the launch template name must be specified.")
}

type templateRef struct {
	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
}

func (c *templates) deleteLaunchTemplate(r *call, in *templateRef) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.findTemplate(in.LaunchTemplateID, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	delete(c.lts, t.id)
	return oneTemplate{t.toXML()}, nil
}

type describeTemplatesInput struct {
	page
	Filter             []filter
	LaunchTemplateID   []string `query:"LaunchTemplateId"`
	LaunchTemplateName []string
}

func (c *templates) describeLaunchTemplates(_ *call, in *describeTemplatesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range in.LaunchTemplateID {
		if _, err := c.findTemplate(id, ""); err != nil {
			return nil, err
		}
	}
	for _, name := range in.LaunchTemplateName {
		if _, err := c.findTemplate("", name); err != nil {
			return nil, err
		}
	}
	var all []xmlTemplate
	for _, id := range slices.Sorted(maps.Keys(c.lts)) {
		t := c.lts[id]
		ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
			switch name {
			case "launch-template-name":
				return []string{t.name}, true
			case "create-time":
				return []string{t.made.UTC().Format(time.RFC3339)}, true
			}
			return tagAttribute(t.tags, name)
		})
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.LaunchTemplateID, id) && oneOf(in.LaunchTemplateName, t.name) {
			all = append(all, t.toXML())
		}
	}
	var out struct {
		Templates []xmlTemplate `xml:"launchTemplates>item"`
		Next      string        `xml:"nextToken,omitempty"`
	}
	var err error
	out.Templates, out.Next, err = cutPage(all, in.page, 200, func(t xmlTemplate) string { return t.ID })
	return out, err
}

type describeVersionsInput struct {
	page
	templateRef
	LaunchTemplateVersion []string
}

type xmlTemplateVersion struct {
	ID      string       `xml:"launchTemplateId"`
	Name    string       `xml:"launchTemplateName"`
	Number  int          `xml:"versionNumber"`
	Made    wire.Time    `xml:"createTime"`
	By      string       `xml:"createdBy"`
	Default bool         `xml:"defaultVersion"`
	Data    templateData `xml:"launchTemplateData"`
}

func (c *templates) describeLaunchTemplateVersions(_ *call, in *describeVersionsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.findTemplate(in.LaunchTemplateID, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	for _, v := range in.LaunchTemplateVersion {
		if !oneVersion(v) {
			return nil, wire.Fail(400, "InvalidLaunchTemplateId.VersionNotFound",
				"Could not find launch template version %s", v)
		}
	}
	return struct {
		Versions []xmlTemplateVersion `xml:"launchTemplateVersionSet>item"`
	}{[]xmlTemplateVersion{{t.id, t.name, 1, wire.Time{Time: t.made}, t.by, true, t.data}}}, nil
}

// oneVersion says whether v names the only version of a template.
func oneVersion(v string) bool {
	return v == "" || v == "1" || strings.EqualFold(v, "$Latest") || strings.EqualFold(v, "$Default")
}
