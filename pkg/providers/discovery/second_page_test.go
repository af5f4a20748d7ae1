package discovery

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/smithy-go/encoding/cbor"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/paging"
)

// firstPages answers one action with a page that has a next one, which it refuses. Lists of other actions have one
// page.
type firstPages struct {
	action  string
	refused int
	endless bool // no page is refused, and each has a next one
}

// What a page holds; MORE stands for the token of the next one.
const (
	pageOfEC2 = "<R><subnetSet><item><subnetId>subnet-1</subnetId></item></subnetSet><securityGroupInfo><item><groupId>sg-1</groupId></item></securityGroupInfo>" +
		"<imagesSet><item><imageId>ami-1</imageId><architecture>arm64</architecture></item></imagesSet>" +
		"<capacityReservationSet><item><capacityReservationId>cr-1</capacityReservationId><state>active</state><instanceType>m5.large</instanceType><availableInstanceCount>3</availableInstanceCount></item></capacityReservationSet>" +
		"<reservationSet><item><instancesSet><item><instanceId>i-1</instanceId><instanceType>m5.large</instanceType><placement><availabilityZone>a</availabilityZone></placement></item></instancesSet></item></reservationSet>" +
		"<vpcEndpointSet><item><vpcEndpointId>vpce-1</vpcEndpointId></item></vpcEndpointSet><routeTableSet><item><routeTableId>rtb-1</routeTableId></item></routeTableSet>" +
		"<launchTemplates><item><launchTemplateId>lt-1</launchTemplateId></item></launchTemplates><instanceTypeSet><item><instanceType>m5.large</instanceType></item></instanceTypeSet>" +
		"<instanceTypeOfferingSet><item><instanceType>m5.large</instanceType><location>a</location></item></instanceTypeOfferingSet>" +
		"<spotPriceHistorySet><item><instanceType>m5.large</instanceType><availabilityZone>a</availabilityZone><spotPrice>0.05</spotPrice></item></spotPriceHistorySet><nextToken>MORE</nextToken></R>"
	pageOfIAM = "<R><ListInstanceProfilesResult><InstanceProfiles><member><InstanceProfileName>p</InstanceProfileName></member></InstanceProfiles>" +
		"<IsTruncated>true</IsTruncated><Marker>MORE</Marker></ListInstanceProfilesResult></R>"
	pageOfPlans = `{"savingsPlans":[{"savingsPlanId":"1","savingsPlanType":"Compute","commitment":"1"}],"searchResults":[{"rate":"0.05","unit":"Hrs","properties":[{"name":"instanceType","value":"m5.large"}]}],"nextToken":"MORE"}`
	pageOfList  = `{"PriceList":["{\"product\":{\"attributes\":{\"instanceType\":\"m5.large\",\"volumeApiName\":\"gp3\"}},\"terms\":{\"OnDemand\":{\"b\":{\"priceDimensions\":{\"1\":{\"unit\":\"GB-Mo\",\"pricePerUnit\":{\"USD\":\"0.096\"}}}}}}}"],"NextToken":"MORE"}`
)

func (p *firstPages) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	form, err := url.ParseQuery(string(body))
	target := r.Header.Get("X-Amz-Target")
	action, text, header := path.Base(r.URL.Path), pageOfPlans, http.Header{}
	switch {
	case target != "":
		action, text = target[strings.LastIndexByte(target, '.')+1:], pageOfList
	case err == nil && form.Has("Action"):
		if action, text = form.Get("Action"), pageOfEC2; action == "ListInstanceProfiles" {
			text = pageOfIAM
		}
	case action == "DescribeAlarms":
		header.Set("Smithy-Protocol", "rpc-v2-cbor")
		page := cbor.Map{"MetricAlarms": cbor.List{cbor.Map{"AlarmName": cbor.String("a"), "StateValue": cbor.String("OK")}}}
		if action == p.action { // a text in CBOR has its length before it
			page["NextToken"] = cbor.String("MORE")
		}
		text = string(cbor.Encode(page))
	}
	status := http.StatusOK
	switch asked := string(body); {
	case action != p.action:
		text = strings.NewReplacer("MORE", "", "<IsTruncated>true", "<IsTruncated>false").Replace(text)
	case strings.Contains(asked, "MORE") && !p.endless:
		p.refused++
		status, text = http.StatusBadRequest, "<Response><Errors><Error><Code>Planted</Code></Error></Errors></Response>"
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// halfList is a list of which the first page is answered, and the next refused.
type halfList struct {
	what, action string
	read         func(context.Context) (found int, err error)
}

// halfLists are the lists that are read page by page. found is how much a caller gets of the half.
func halfLists(p *firstPages) []halfList {
	nobody, once := aws.AnonymousCredentials{}, aws.NopRetryer{}
	r := &ClassResolver{Region: "us-west-2", Cluster: "demo", Now: time.Now,
		EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: p, Retryer: once, Credentials: nobody}),
		IAM: iam.New(iam.Options{Region: "us-west-2", HTTPClient: p, Retryer: once, Credentials: nobody})}
	refresher := &CatalogRefresher{region: "us-west-2", now: time.Now, ec2: r.EC2,
		account: &accountReader{cluster: "demo", share: 1, plans: savingsplans.New(savingsplans.Options{Region: "us-east-1", HTTPClient: p, Retryer: once, Credentials: nobody})},
		pricing: pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: p, Retryer: once, Credentials: nobody})}
	alarms := Alarms{cloudwatch.New(cloudwatch.Options{Region: "us-west-2", HTTPClient: p, Retryer: once, Credentials: nobody})}
	tags, looks := map[string]string{"team": "a"}, Preflight{EC2: r.EC2}
	class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{Tags: tags}}, SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tags}},
		AMISelectorTerms: []awsv1.AMISelectorTerm{{Tags: tags}}, CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{Tags: tags}}}}
	plan := preflight.StackPlan{Cluster: "demo", VPC: "vpc-1"}
	return []halfList{
		{"subnets", "DescribeSubnets", func(ctx context.Context) (int, error) { got, err := r.findSubnets(ctx, class); return len(got), err }},
		{"security groups", "DescribeSecurityGroups", func(ctx context.Context) (int, error) {
			got, err := r.findSecurityGroups(ctx, class)
			return len(got), err
		}},
		{"images", "DescribeImages", func(ctx context.Context) (int, error) { got, err := r.findImages(ctx, class); return len(got), err }},
		{"reservations", "DescribeCapacityReservations", func(ctx context.Context) (int, error) {
			got, err := r.findReservations(ctx, class)
			return len(got), err
		}},
		{"profiles", "ListInstanceProfiles", func(ctx context.Context) (int, error) { got, err := r.ListProfiles(ctx); return len(got), err }},
		{"profiles to delete", "ListInstanceProfiles", func(ctx context.Context) (int, error) { return 0, r.deleteProfiles(ctx, "/") }},
		{"templates to delete", "DescribeLaunchTemplates", func(ctx context.Context) (int, error) {
			return 0, r.deleteTemplates(ctx, ec2Filter("tag-key", "a"))
		}},
		{"types", "DescribeInstanceTypes", func(ctx context.Context) (int, error) { got, err := refresher.readTypes(ctx); return len(got), err }},
		{"zones of types", "DescribeInstanceTypeOfferings", func(ctx context.Context) (int, error) { got, err := refresher.readTypes(ctx); return len(got), err }},
		{"prices", "GetProducts", func(ctx context.Context) (int, error) { got, err := refresher.onDemand(ctx); return len(got), err }},
		{"prices of volumes", "GetProducts", func(ctx context.Context) (int, error) {
			got, err := refresher.readDiskPrices(ctx)
			return len(got), err
		}},
		{"spot prices", "DescribeSpotPriceHistory", func(ctx context.Context) (int, error) {
			got, err := refresher.readSpotPrices(ctx, time.Now())
			return len(got.prices), err
		}},
		{"savings plans", "DescribeSavingsPlans", func(ctx context.Context) (int, error) {
			got, _, err := refresher.savingsPlans(ctx, map[string]instancetypes.Commitment{"1": {ID: "1", Rates: map[string]float64{"m5.large": 0.05}}})
			return len(got), err
		}},
		{"rates", "DescribeSavingsPlanRates", func(ctx context.Context) (int, error) {
			got, _, err := refresher.savingsPlans(ctx, nil)
			return len(got), err
		}},
		{"instances elsewhere", "DescribeInstances", func(ctx context.Context) (int, error) {
			got, err := refresher.countForeignUse(ctx)
			return len(got), err
		}},
		{"idle reservations", "DescribeCapacityReservations", func(ctx context.Context) (int, error) {
			got, err := refresher.countForeignUse(ctx)
			return len(got), err
		}},
		{"routes", "DescribeRouteTables", func(ctx context.Context) (int, error) {
			got, _, err := ReadSubnetRoutes(ctx, r.EC2, "us-west-2", "vpc-1", []string{"subnet-1"})
			return len(got), err
		}},
		{"endpoints", "DescribeVpcEndpoints", func(ctx context.Context) (int, error) {
			var facts preflight.Facts
			err := looks.readEndpoints(ctx, plan, &facts)
			return len(facts.Endpoints), err
		}},
		{"nodes", "DescribeInstances", func(ctx context.Context) (int, error) {
			var facts preflight.Facts
			err := looks.countClusterNodes(ctx, plan, &facts)
			return facts.Nodes, err
		}},
		{"alarms", "DescribeAlarms", func(ctx context.Context) (int, error) {
			got, err := alarms.ReadAlarms(ctx, []string{"a", "b"})
			return len(got), err
		}},
	}
}

// A list of more pages than are read is an error that says so, and nothing of it; but of nodes as many count as were
// seen.
func TestAListBeyondItsBoundSaysSo(t *testing.T) {
	p := &firstPages{endless: true}
	for _, c := range halfLists(p) {
		p.action = c.action
		found, err := c.read(t.Context())
		_, beyond := errors.AsType[*paging.BoundError](err)
		if c.what == "nodes" {
			if err != nil || found != mostNodePages {
				t.Errorf("%d nodes, error %v", found, err)
			}
		} else if !beyond || found > 0 {
			t.Errorf("%s: %d found, error %v", c.what, found, err)
		}
	}
}

// Half a list is none: where the second page is refused the caller gets an error and nothing of the first.
func TestHalfAListIsNone(t *testing.T) {
	p := &firstPages{}
	for _, c := range halfLists(p) {
		if p.action, p.refused = c.action+" of nobody", 0; c.what != "templates to delete" {
			if _, err := c.read(t.Context()); err != nil {
				t.Errorf("%s: one page is an error: %v", c.what, err)
			}
		}
		p.action = c.action
		found, err := c.read(t.Context())
		if err == nil || found > 0 || p.refused != 1 {
			t.Errorf("%s: %d of the first page, error %v, %d pages refused", c.what, found, err, p.refused)
		}
	}
}
