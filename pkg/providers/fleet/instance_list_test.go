package fleet

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
)

// instanceItem is what EC2 says of an instance of the account, with what a test adds.
func instanceItem(n int, more string) string {
	tags := ""
	for _, key := range []string{"Name", "karpenter.sh/nodeclaim", "karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name", "kubernetes.io/cluster/demo", "team", "environment", "owner"} {
		tags += fmt.Sprintf("<item><key>%s</key><value>%s-%d</value></item>", key, key, n)
	}
	return fmt.Sprintf(`<item><instanceId>i-%017d</instanceId><imageId>ami-bff32ccc</imageId><instanceState><code>16</code><name>running</name></instanceState>`+
		`<privateDnsName>ip-10-0-%d-%d.us-west-2.compute.internal</privateDnsName><dnsName></dnsName><reason/><amiLaunchIndex>0</amiLaunchIndex><productCodes/>`+
		`<instanceType>m5.2xlarge</instanceType><launchTime>2026-05-08T16:46:19.000Z</launchTime><placement><availabilityZone>us-west-2c</availabilityZone><groupName/><tenancy>default</tenancy></placement>`+
		`<monitoring><state>disabled</state></monitoring><subnetId>subnet-56f5f633</subnetId><vpcId>vpc-11112222</vpcId><privateIpAddress>10.0.1.88</privateIpAddress>`+
		`<groupSet><item><groupId>sg-e4076980</groupId><groupName>nodes</groupName></item><item><groupId>sg-a</groupId></item></groupSet><architecture>x86_64</architecture>`+
		`<blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><volumeId>vol-1</volumeId><status>attached</status><attachTime>2026-05-08T16:46:20.000Z</attachTime></ebs></item></blockDeviceMapping>`+
		`<tagSet>%s</tagSet><networkInterfaceSet><item><networkInterfaceId>eni-551ba033</networkInterfaceId><subnetId>subnet-other</subnetId><groupSet><item><groupId>sg-other</groupId></item></groupSet>`+
		`<attachment><attachmentId>eni-attach-1</attachmentId><deviceIndex>0</deviceIndex></attachment><privateIpAddressesSet><item><primary>true</primary></item></privateIpAddressesSet><ipv6AddressesSet/></item></networkInterfaceSet>`+
		`<iamInstanceProfile><arn>arn:aws:iam::111122223333:instance-profile/nodes</arn></iamInstanceProfile><ebsOptimized>false</ebsOptimized>%s</item>`, n, n>>8, n&255, tags, more)
}

func instancesAnswer(reservations ...string) string {
	text := `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">` + "\n<requestId>8f7724cf</requestId>\n<reservationSet>"
	for _, r := range reservations {
		text += "<item><reservationId>r-1</reservationId><groupSet/><instancesSet>" + r + "</instancesSet></item>\n"
	}
	return text + "</reservationSet></DescribeInstancesResponse>"
}

// answering is an EC2 that gives one answer to everything.
type answering string

// Do answers.
func (a answering) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

func (a answering) client() *ec2.Client {
	return ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: a, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{}})
}

// read is what a call finds without the SDK and what the SDK finds.
func (a answering) read(t *testing.T) (ours, sdks []cluster.Instance, ourErr, sdkErr error) {
	t.Helper()
	f := &Fleet{EC2: a.client(), Cluster: "demo", Now: time.Now}
	ours, ourErr = f.ListInstances(t.Context())
	page, sdkErr := f.EC2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	if sdkErr != nil {
		return ours, nil, ourErr, sdkErr
	}
	for _, r := range page.Reservations {
		for _, i := range r.Instances {
			sdks = append(sdks, instanceFrom(i))
		}
	}
	return ours, sdks, ourErr, sdkErr
}

// Instances are what the SDK takes them for, whether its decoder is asked or not.
func TestInstancesAreReadAsTheSDKReadsThem(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		alone  bool // the SDK need not be asked
	}{
		"none":         {instancesAnswer(), true},
		"no set":       {`<DescribeInstancesResponse><requestId>1</requestId></DescribeInstancesResponse>`, true},
		"an empty set": {`<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>`, true},
		"two of one launch, and a third": {instancesAnswer(instanceItem(1, "")+instanceItem(2, ""),
			instanceItem(3, `<instanceLifecycle>spot</instanceLifecycle><spotInstanceRequestId>sir-1</spotInstanceRequestId>`)), true},
		"in a reservation": {instancesAnswer(instanceItem(1, `<capacityReservationId>cr-1</capacityReservationId>`+
			`<capacityReservationSpecification><capacityReservationPreference>capacity-reservations-only</capacityReservationPreference></capacityReservationSpecification>`)), true},
		"ended": {instancesAnswer(`<item><instanceId>i-1</instanceId><instanceState><code>48</code><name>terminated</name></instanceState><tagSet/>` +
			`<stateReason><code>Server.SpotInstanceTermination</code><message>Server.SpotInstanceTermination: gone</message></stateReason></item>`), true},
		"in a partition": {instancesAnswer(`<item><instanceId>i-1</instanceId><placement><availabilityZone>us-west-2a</availabilityZone><partitionNumber>3</partitionNumber></placement></item>`), true},
		"with entities":  {instancesAnswer(`<item><instanceId>i-1</instanceId><tagSet><item><key>karpenter.sh/nodeclaim</key><value>a&amp;b &#x3c;c&gt;</value></item></tagSet></item>`), true},
		"with a comment": {instancesAnswer(`<item><!-- one --><instanceId>i-1</instanceId></item>`), false},
		"with CDATA":     {instancesAnswer(`<item><instanceId><![CDATA[i-1]]></instanceId></item>`), false},
		"a bad date":     {instancesAnswer(`<item><instanceId>i-1</instanceId><launchTime>now</launchTime></item>`), false},
		"cut short":      {instancesAnswer(instanceItem(1, ""))[:2000], false},
	} {
		t.Run(name, func(t *testing.T) {
			ours, sdks, ourErr, sdkErr := answering(c.answer).read(t)
			if d := cmp.Diff(sdks, ours); d != "" || (ourErr == nil) != (sdkErr == nil) {
				t.Errorf("%v and %v (-SDK +ours):\n%s", sdkErr, ourErr, d)
			}
			if _, rest, ok := (&instanceList{}).read([]byte(c.answer)); ok != c.alone || strings.Contains(string(rest), "instanceId") {
				t.Errorf("understood: %t, want %t; the SDK gets to see %s", ok, c.alone, rest)
			}
		})
	}
}

// Whatever EC2 answers ends, and what is understood has as many instances as the SDK finds.
func FuzzInstanceList(f *testing.F) {
	f.Add(instancesAnswer(instanceItem(1, "")))
	f.Add("<a><reservationSet><b><instancesSet><c/></instancesSet></b></reservationSet></a>")
	f.Add("</>")
	f.Fuzz(func(t *testing.T, text string) {
		found, _, ok := (&instanceList{}).read([]byte(text))
		if !ok && found != nil {
			t.Errorf("%d instances of an answer that is not understood", len(found))
		}
	})
}

// BenchmarkListInstances measures a page of what EC2 says of a thousand instances.
func BenchmarkListInstances(b *testing.B) {
	var items []string
	for n := range 1000 {
		items = append(items, instanceItem(n, ""))
	}
	text := instancesAnswer(items...)
	f := &Fleet{EC2: answering(text).client(), Cluster: "demo", Now: time.Now}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if all, err := f.ListInstances(b.Context()); err != nil || len(all) != len(items) {
			b.Fatal(len(all), err)
		}
	}
}
