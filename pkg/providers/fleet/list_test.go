package fleet

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// described is what EC2 says of an instance of the account.
func described(id, launched string) string {
	tags := ""
	for _, key := range []string{"Name", "karpenter.sh/nodeclaim", "karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name", "kubernetes.io/cluster/demo", "team", "environment", "owner"} {
		tags += fmt.Sprintf("<item><key>%s</key><value>%s-%s</value></item>", key, key, id)
	}
	return fmt.Sprintf(`<item><reservationId>r-1</reservationId><groupSet/><instancesSet><item><instanceId>%s</instanceId><imageId>ami-bff32ccc</imageId><instanceState><code>16</code><name>running</name></instanceState>`+
		`<privateDnsName>%s.us-west-2.compute.internal</privateDnsName><dnsName></dnsName><reason/><amiLaunchIndex>0</amiLaunchIndex><productCodes/>`+
		`<instanceType>m5.2xlarge</instanceType><launchTime>%s</launchTime><placement><availabilityZone>us-west-2c</availabilityZone><groupName/><tenancy>default</tenancy></placement>`+
		`<monitoring><state>disabled</state></monitoring><subnetId>subnet-56f5f633</subnetId><vpcId>vpc-11112222</vpcId><privateIpAddress>10.0.1.88</privateIpAddress>`+
		`<groupSet><item><groupId>sg-e4076980</groupId><groupName>nodes</groupName></item><item><groupId>sg-a</groupId></item></groupSet><architecture>x86_64</architecture>`+
		`<blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><volumeId>vol-1</volumeId><status>attached</status><attachTime>2026-05-08T16:46:20.000Z</attachTime></ebs></item></blockDeviceMapping>`+
		`<tagSet>%s</tagSet><networkInterfaceSet><item><networkInterfaceId>eni-551ba033</networkInterfaceId><subnetId>subnet-56f5f633</subnetId><groupSet><item><groupId>sg-a</groupId></item></groupSet>`+
		`<attachment><attachmentId>eni-attach-1</attachmentId><deviceIndex>0</deviceIndex></attachment><privateIpAddressesSet><item><primary>true</primary></item></privateIpAddressesSet><ipv6AddressesSet/></item></networkInterfaceSet>`+
		`<iamInstanceProfile><arn>arn:aws:iam::111122223333:instance-profile/nodes</arn></iamInstanceProfile><ebsOptimized>false</ebsOptimized></item></instancesSet></item>`, id, id, launched, tags)
}

// describer is an EC2 that knows the filters by id and by time of launch.
type describer struct {
	launched map[string]string // by id
	texts    map[string]string // the same
	order    []string

	mu    sync.Mutex
	asked []string // values of these filters
	bytes int
}

func (d *describer) add(id, launched string) {
	if d.launched == nil {
		d.launched, d.texts = map[string]string{}, map[string]string{}
	}
	d.launched[id], d.texts[id], d.order = launched, described(id, launched), append(d.order, id)
}

// Do answers.
func (d *describer) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	text := strings.Builder{}
	text.WriteString(`<DescribeInstancesResponse><reservationSet>`)
	d.mu.Lock()
	defer d.mu.Unlock()
	selected := d.order
	for n := 1; form.Has(fmt.Sprintf("Filter.%d.Name", n)); n++ {
		values := listed(form, fmt.Sprintf("Filter.%d.Value.", n))
		name := form.Get(fmt.Sprintf("Filter.%d.Name", n))
		if name != "instance-id" && name != "launch-time" {
			continue
		}
		d.asked = append(d.asked, name+" "+strings.Join(values, " "))
		selected = slices.DeleteFunc(slices.Clone(selected), func(id string) bool {
			return !slices.ContainsFunc(values, func(v string) bool {
				return name == "instance-id" && v == id || name == "launch-time" && strings.HasPrefix(d.launched[id], strings.TrimSuffix(v, "*"))
			})
		})
	}
	for _, id := range selected {
		text.WriteString(d.texts[id])
	}
	text.WriteString(`</reservationSet></DescribeInstancesResponse>`)
	d.bytes += text.Len()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text.String())), Request: r}, nil
}

func (d *describer) fleet(now string) *Fleet {
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		panic(err)
	}
	return &Fleet{Cluster: "demo", Now: func() time.Time { return at },
		EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: d, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{}})}
}

func TestInstancesAreListedByIDAndByLaunch(t *testing.T) {
	d := &describer{}
	d.add("i-3", "2026-05-08T09:10:00.000Z")
	d.add("i-2", "2026-05-08T09:58:59.000Z")
	d.add("i-1", "2026-05-08T10:00:59.000Z")
	f := d.fleet("2026-05-08T10:00:30Z")
	at := func(s string) time.Time {
		out, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		which cluster.InstanceFilter
		want  string
		asked []string
	}{
		{"all", cluster.InstanceFilter{}, "i-1 running, i-2 running, i-3 running", nil},
		{"by id, one of which there is", cluster.InstanceFilter{IDs: []string{"i-3", "i-9"}}, "i-3 running", []string{"instance-id i-3 i-9"}},
		{"of the last minutes", cluster.InstanceFilter{LaunchedSince: at("2026-05-08T09:59:40Z")}, "i-1 running",
			[]string{"launch-time 2026-05-08T09:59* 2026-05-08T10:00* 2026-05-08T10:01*"}},
		{"since too long for a filter", cluster.InstanceFilter{LaunchedSince: at("2026-05-08T09:00:00Z")}, "i-1 running, i-2 running, i-3 running", nil},
		{"both", cluster.InstanceFilter{IDs: []string{"i-1", "i-3"}, LaunchedSince: at("2026-05-08T10:00:00Z")}, "i-1 running",
			[]string{"launch-time 2026-05-08T10:00* 2026-05-08T10:01*", "instance-id i-1 i-3"}},
	} {
		d.asked = nil
		got, err := f.ListInstances(t.Context(), c.which)
		if diff := cmp.Diff(c.want, idsOf(got)); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
		if diff := cmp.Diff(c.asked, d.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", c.name, diff)
		}
	}
}

// More ids than a request may name are asked for by several.
func TestManyInstancesAreListedByID(t *testing.T) {
	d := &describer{}
	var ids []string
	for n := range 250 {
		id := fmt.Sprintf("i-%03d", n)
		d.add(id, "2026-05-08T09:10:00.000Z")
		ids = append(ids, id)
	}
	got, err := d.fleet("2026-05-08T10:00:30Z").ListInstances(t.Context(), cluster.InstanceFilter{IDs: ids})
	if err != nil || len(got) != len(ids) || len(d.asked) != 3 {
		t.Fatalf("%d instances by %d requests, error %v; want 250 by 3", len(got), len(d.asked), err)
	}
	for n, i := range got {
		if i.ID != ids[n] {
			t.Errorf("instance %d is %s, want %s", n, i.ID, ids[n])
		}
	}
}

// brokenAt answers one request of those that it gets with an error, and the others as the describer does.
type brokenAt struct {
	*describer
	request int // from 1

	mu   sync.Mutex
	seen int
}

func (b *brokenAt) Do(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.seen++
	broken := b.seen == b.request
	b.mu.Unlock()
	if !broken {
		return b.describer.Do(r)
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(
		"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors></Response>"))}, nil
}

// A part of a list by ids that fails makes the list fail: what is not listed counts as gone.
func TestAPartOfAListThatFails(t *testing.T) {
	d := &describer{}
	var ids []string
	for n := range 250 {
		ids = append(ids, fmt.Sprintf("i-%03d", n))
		d.add(ids[n], "2026-05-08T09:10:00.000Z")
	}
	for request := 1; request <= 3; request++ {
		f := d.fleet("2026-05-08T10:00:30Z")
		f.EC2 = ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: &brokenAt{describer: d, request: request}, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})
		got, err := f.ListInstances(t.Context(), cluster.InstanceFilter{IDs: ids})
		if awserrors.CodeOf(err) != "RequestLimitExceeded" || len(got) > 0 {
			t.Errorf("part %d fails: %d instances, error %v", request, len(got), err)
		}
	}
}

// BenchmarkListInstances measures a list of all of 2,000 instances, and one of those launched lately, of which there
// are none.
func BenchmarkListInstances(b *testing.B) {
	for name, which := range map[string]cluster.InstanceFilter{
		"all": {}, "lately": {LaunchedSince: time.Date(2026, 5, 8, 9, 58, 0, 0, time.UTC)},
	} {
		b.Run(name, func(b *testing.B) {
			d := &describer{}
			for n := range 2000 {
				d.add(fmt.Sprintf("i-%017d", n), "2026-05-08T09:10:00.000Z")
			}
			f := d.fleet("2026-05-08T10:00:30Z")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.ListInstances(b.Context(), which); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(d.bytes)/float64(b.N), "answer-B/op")
		})
	}
}
