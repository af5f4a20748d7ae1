package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	gocmp "github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// running is an instance of an account.
type running struct {
	id, state string
	tags      map[string]string
}

// account answers as EC2 does for what runs in it. DescribeInstances lists what every filter selects, one on a page;
// one id that is not known refuses a whole call. CreateFleet says that its token came with another request before.
type account struct {
	instances []running
	templates []string // names, each created in the second that its place says
	shown     int      // looks before instances show up
	looks     int
	asked     []string // what was asked for but looks, and for which instances

	answersNothing bool // CreateFleet answers without instances and errors
}

func (a *account) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, "<Response></Response>"
	refuse := func(code string) {
		status, text = http.StatusBadRequest, "<Response><Errors><Error><Code>"+code+"</Code><Message>m</Message></Error></Errors></Response>"
	}
	ids := append(listed(form, "InstanceId."), listed(form, "ResourceId.")...)
	switch action := form.Get("Action"); {
	case action == "CreateFleet" && a.answersNothing:
	case action == "CreateFleet":
		refuse(awserrors.TokenReused)
	case action == "DescribeLaunchTemplates":
		text = a.templatePage(form)
	case slices.ContainsFunc(ids, func(id string) bool {
		return !slices.ContainsFunc(a.instances, func(i running) bool { return i.id == id })
	}):
		refuse(instanceNotFound)
	case action == "DescribeInstances":
		text = a.page(form)
	default:
		a.asked = append(a.asked, strings.Join(append([]string{action, form.Get("LaunchTemplateId")}, append(ids, tagged(form)...)...), " "))
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// listed are the values prefix1, prefix2 and so on of a request.
func listed(form url.Values, prefix string) []string {
	var out []string
	for n := 1; form.Has(fmt.Sprint(prefix, n)); n++ {
		out = append(out, form.Get(fmt.Sprint(prefix, n)))
	}
	return out
}

// tagged are the tags that CreateTags sets.
func tagged(form url.Values) []string {
	var out []string
	for n := 1; form.Has(fmt.Sprintf("Tag.%d.Key", n)); n++ {
		out = append(out, form.Get(fmt.Sprintf("Tag.%d.Key", n))+"="+form.Get(fmt.Sprintf("Tag.%d.Value", n)))
	}
	return out
}

// selected reports whether all filters of the request select something of this id with these tags.
func selected(form url.Values, id string, tags map[string]string) bool {
	for n := 1; form.Has(fmt.Sprintf("Filter.%d.Name", n)); n++ {
		name, values := form.Get(fmt.Sprintf("Filter.%d.Name", n)), listed(form, fmt.Sprintf("Filter.%d.Value.", n))
		key, byValue := strings.CutPrefix(name, "tag:")
		has, ok := tags[key]
		switch {
		case byValue && ok && slices.Contains(values, has):
		case name == "instance-id" && slices.Contains(values, id):
		case name == "tag-key" && slices.ContainsFunc(values, func(v string) bool { _, ok := tags[v]; return ok }):
		default:
			return false
		}
	}
	return true
}

func (a *account) page(form url.Values) string {
	if form.Get("NextToken") == "" {
		a.looks++
	}
	var matching []running
	for _, i := range a.instances {
		if ids := listed(form, "InstanceId."); len(ids) > 0 && !slices.Contains(ids, i.id) {
			continue
		}
		if selected(form, i.id, i.tags) && a.looks > a.shown {
			matching = append(matching, i)
		}
	}
	at := len(form.Get("NextToken"))
	if at >= len(matching) {
		return "<Response><reservationSet/></Response>"
	}
	var b strings.Builder
	i := matching[at]
	fmt.Fprintf(&b, "<Response><reservationSet><item><instancesSet><item><instanceId>%s</instanceId><instanceState><name>%s</name></instanceState><tagSet>", i.id, i.state)
	for k, v := range i.tags {
		fmt.Fprintf(&b, "<item><key>%s</key><value>%s</value></item>", k, v)
	}
	b.WriteString("</tagSet></item></instancesSet></item></reservationSet>")
	if at+1 < len(matching) {
		b.WriteString("<nextToken>" + strings.Repeat("x", at+1) + "</nextToken>")
	}
	return b.String() + "</Response>"
}

func (a *account) templatePage(form url.Values) string {
	var b strings.Builder
	b.WriteString("<Response><launchTemplates>")
	for n, name := range a.templates {
		owner, _, _ := strings.Cut(name, ":")
		if named := form.Get("LaunchTemplateName.1"); named != "" || selected(form, "", map[string]string{launch.TagClusterName: owner}) {
			fmt.Fprintf(&b, "<item><launchTemplateId>lt-%d</launchTemplateId><launchTemplateName>%s</launchTemplateName><createTime>%s</createTime></item>",
				n, cmp.Or(named, name[strings.Index(name, ":")+1:]), time.Unix(int64(n), 0).UTC().Format(time.RFC3339))
		}
	}
	return b.String() + "</launchTemplates></Response>"
}

func (a *account) fleet() *Fleet {
	return &Fleet{Cluster: "demo", Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: a,
		Retryer: aws.NopRetryer{}, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		})})}
}

// ours are the tags of an instance of the cluster demo, with more of them.
func ours(more ...string) map[string]string {
	out := map[string]string{launch.TagClusterName: "demo", launch.TagNodePool: "web", launch.TagNodeClass: "default"}
	for i := 0; i < len(more); i += 2 {
		if out[more[i]] = more[i+1]; more[i+1] == "" {
			delete(out, more[i])
		}
	}
	return out
}

func idsOf(all []cluster.Instance) string {
	var out []string
	for _, i := range all {
		out = append(out, i.ID+" "+i.State)
	}
	return strings.Join(out, ", ")
}

// Of all that runs in the account those count as ours that have the tags of the cluster, of a pool and of a class.
// Leaks are ended by this.
func TestInstancesOfOthersAreNotListed(t *testing.T) {
	a := &account{instances: []running{
		{"i-9", "running", ours()}, {"i-8", "terminated", ours()},
		{"i-7", "running", ours(launch.TagClusterName, "other")}, {"i-6", "running", ours(launch.TagClusterName, "")}, {"i-5", "running", ours(launch.TagNodePool, "")},
		{"i-4", "running", ours(launch.TagNodeClass, "")}, {"i-3", "running", nil}, {"i-2", "running", ours(launch.TagNodePool, "batch")},
	}}
	got, err := a.fleet().ListInstances(t.Context(), cluster.InstanceFilter{})
	if d := gocmp.Diff("i-2 running, i-8 terminated, i-9 running", idsOf(got)); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}

// One id that EC2 does not know keeps no other running, and is no error; any other refusal is one.
func TestTerminateEndsThoseThatThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{instances: []running{{"i-1", "running", nil}, {"i-3", "running", nil}}}
		f := a.fleet()
		if err := f.TerminateInstances(t.Context(), []string{"i-1", "i-2", "i-3"}); err != nil {
			t.Error(err)
		}
		if err := f.TerminateInstances(t.Context(), []string{"i-2"}); err != nil {
			t.Error(err)
		}
		if err := f.TerminateInstances(t.Context(), []string{"i-3"}); err != nil {
			t.Error(err)
		}
		if d := gocmp.Diff([]string{"TerminateInstances  i-1", "TerminateInstances  i-3", "TerminateInstances  i-3"}, a.asked); d != "" {
			t.Errorf("asked (-want +got):\n%s", d)
		}
		w := &wire{answers: []string{"UnauthorizedOperation", "UnauthorizedOperation", "UnauthorizedOperation"}}
		w.refused = "TerminateInstances"
		if err := w.fleet().TerminateInstances(t.Context(), []string{"i-1", "i-2"}); err == nil {
			t.Error("a refusal is no error")
		}
	})
}

// An instance is named as far as it is not, by what a list of the last minute says or by a look of its own; one that is
// gone is no error.
func TestAnInstanceGetsTheTagsThatItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{instances: []running{{"i-1", "running", ours()}, {"i-2", "running", ours("Name", "mine", launch.TagClaim, "c")}, {"i-3", "running", map[string]string{launch.TagNodePool: "p", launch.TagNodeClass: "c"}}}}
		f, now := a.fleet(), time.Unix(1_800_000_000, 0)
		f.Now = func() time.Time { return now }
		name := func(id string) {
			t.Helper()
			if err := f.TagInstance(t.Context(), id, "node", "claim"); err != nil {
				t.Error(err)
			}
		}
		for _, id := range []string{"i-1", "i-2", "i-3", "i-4"} {
			name(id)
		}
		want := []string{"CreateTags  i-1 Name=node karpenter.sh/nodeclaim=claim", "CreateTags  i-3 Name=node karpenter.sh/nodeclaim=claim eks:eks-cluster-name=demo"}
		if d := gocmp.Diff(want, a.asked); d != "" {
			t.Errorf("asked (-want +got):\n%s", d)
		}
		if _, err := f.ListInstances(t.Context(), cluster.InstanceFilter{}); err != nil {
			t.Error(err)
		}
		looks := a.looks
		a.instances[0].tags["Name"] = "node"
		name("i-1")
		if a.looks != looks {
			t.Error("an instance of a list of this minute is looked at again")
		}
		now = now.Add(listHolds)
		a.asked, a.instances[0].tags[launch.TagClaim] = nil, "claim"
		name("i-1")
		if a.looks == looks || len(a.asked) > 0 {
			t.Errorf("by a list that is old: %v", a.asked)
		}
	})
}

// What EC2 tells of an instance. One in an open reservation by chance is on-demand.
func TestAnInstanceOfEC2(t *testing.T) {
	cr, only, open := aws.String("cr-1"), types.CapacityReservationPreferenceCapacityReservationsOnly, types.CapacityReservationPreferenceOpen
	in := func(preference types.CapacityReservationPreference) *types.CapacityReservationSpecificationResponse {
		return &types.CapacityReservationSpecificationResponse{CapacityReservationPreference: preference}
	}
	for want, i := range map[string]types.Instance{
		"on-demand ":    {},
		"spot ":         {InstanceLifecycle: types.InstanceLifecycleTypeSpot},
		"spot  ":        {SpotInstanceRequestId: aws.String("sir-1")},
		"reserved cr-1": {CapacityReservationId: cr, CapacityReservationSpecification: in(only)},
		"on-demand  ":   {CapacityReservationId: cr, CapacityReservationSpecification: in(open)},
		"on-demand   ":  {CapacityReservationId: cr},
		"on-demand    ": {CapacityReservationSpecification: in(only)},
	} {
		got := instanceFrom(i)
		if said := got.CapacityType + " " + got.Reservation; strings.TrimSpace(said) != strings.TrimSpace(want) {
			t.Errorf("%+v is %q, want %q", i, said, want)
		}
	}
	i := types.Instance{InstanceId: aws.String("i-1"), InstanceType: "m5.large", ImageId: aws.String("ami-1"), SubnetId: aws.String("subnet-1"), LaunchTime: aws.Time(time.Unix(5, 0)),
		PrivateDnsName: aws.String("n1"), State: &types.InstanceState{Name: "running"}, Placement: &types.Placement{AvailabilityZone: aws.String("a"), PartitionNumber: aws.Int32(3)},
		SecurityGroups: []types.GroupIdentifier{{GroupId: aws.String("sg-2")}, {GroupId: aws.String("sg-1")}},
		Tags: []types.Tag{{Key: aws.String("z"), Value: aws.String("1")}, {Key: aws.String(launch.TagClaim), Value: aws.String("c")}, {Key: aws.String(launch.TagClaimUID), Value: aws.String("u")},
			{Key: aws.String(launch.TagBatch), Value: aws.String("b")}}}
	want := cluster.Instance{ID: "i-1", State: "running", Type: "m5.large", Zone: "a", CapacityType: instancetypes.OnDemand, ImageID: "ami-1", SubnetID: "subnet-1", Launched: time.Unix(5, 0),
		NodeName: "n1", Partition: 3, SecurityGroups: []string{"sg-1", "sg-2"}, Claim: "c", ClaimUID: "u", Batch: "b", Tags: []string{launch.TagBatch, launch.TagClaim, launch.TagClaimUID, "z"}}
	slices.Sort(want.Tags)
	if d := gocmp.Diff(want, instanceFrom(i)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Templates of other clusters, of a Karpenter beside us, and young ones are not swept.
func TestTemplatesThatAreSwept(t *testing.T) {
	a := &account{templates: []string{"demo:" + launch.TemplatePrefix("demo") + "a", "other:" + launch.TemplatePrefix("demo") + "b", "demo:karpenter.k8s.aws/c",
		"demo:" + launch.TemplatePrefix("demo") + "d"}}
	f := a.fleet()
	f.Now = func() time.Time { return time.Unix(62, 0) }
	n, err := f.SweepTemplates(t.Context(), time.Minute)
	if want := "DeleteLaunchTemplate lt-0"; n != 1 || err != nil || strings.Join(a.asked, ", ") != want {
		t.Errorf("swept %d, error %v: %v, want %s", n, err, a.asked, want)
	}
	f.Now = func() time.Time { return time.Unix(63, 0) } // the age itself is old enough
	if n, err := f.SweepTemplates(t.Context(), time.Minute); n != 2 || err != nil {
		t.Errorf("swept %d a second later, error %v", n, err)
	}
}

// EC2 tells of capacity by the codes that mean lack of it. That it is busy, refuses, or fails, marks nothing as sold
// out.
func TestWhatMarksNoOffering(t *testing.T) {
	for _, code := range []string{"RequestLimitExceeded", "ThrottlingException", "UnauthorizedOperation", "InternalError", "InvalidParameterValue", "InvalidAMIID.NotFound", "Unknown"} {
		one := types.CreateFleetError{ErrorCode: aws.String(code), ErrorMessage: aws.String("m")}
		if marks, other := splitErrors(order(), []types.CreateFleetError{one}); len(marks) > 0 || len(other) != 1 {
			t.Errorf("%s marks %v", code, marks)
		}
	}
	for code := range retry.DefaultThrottleErrorCodes {
		if !awserrors.IsThrottled(code) || awserrors.NoCapacity(code) {
			t.Errorf("the SDK tries again on %s, and it counts as throttled %t, as no capacity %t", code, awserrors.IsThrottled(code), awserrors.NoCapacity(code))
		}
	}
}

// What a refusal shuts out: the offering it is about, all that were asked for when it does not say, a subnet, a group,
// or all of spot.
func TestWhatARefusalMarks(t *testing.T) {
	about := func(kind, zone, subnet string) *types.LaunchTemplateAndOverridesResponse {
		return &types.LaunchTemplateAndOverridesResponse{Overrides: &types.FleetLaunchTemplateOverrides{InstanceType: types.InstanceType(kind), AvailabilityZone: aws.String(zone), SubnetId: aws.String(subnet)}}
	}
	o := order()
	o.Templates[0].Overrides = append(o.Templates[0].Overrides, launch.Override{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: "m5.xlarge", Zone: "b"}})
	offering := func(kind, zone string) instancetypes.OfferingKey {
		return instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: kind, Zone: zone}
	}
	const full, spread = "InsufficientInstanceCapacity", "You've reached the limit of instances in this spread placement group."
	for _, c := range []struct {
		what, code, message, group string
		about                      *types.LaunchTemplateAndOverridesResponse
		want                       []instancetypes.UnavailableOffering
	}{
		{"an offering", full, "", "", about("m5.large", "a", "subnet-a"), []instancetypes.UnavailableOffering{{OfferingKey: offering("m5.large", "a"), Why: full}}},
		{"nothing in particular", full, "", "", nil, []instancetypes.UnavailableOffering{{OfferingKey: offering("m5.large", "a"), Why: full}, {OfferingKey: offering("m5.xlarge", "b"), Why: full}}},
		{"a type without a zone", full, "", "", about("m5.large", "", ""), []instancetypes.UnavailableOffering{{OfferingKey: offering("m5.large", "a"), Why: full}, {OfferingKey: offering("m5.xlarge", "b"), Why: full}}},
		{"an offering in a group", full, "", "pg-1", about("m5.large", "a", ""), []instancetypes.UnavailableOffering{{OfferingKey: offering("m5.large", "a"), Scope: "pg-1", Why: full}}},
		{"a group that is full", full, spread, "pg-1", about("m5.large", "a", ""), []instancetypes.UnavailableOffering{{OfferingKey: offering("", "a"), Scope: "pg-1", Why: full}}},
		{"a group that is full, by another code", "Odd", spread, "pg-1", about("m5.large", "a", ""), []instancetypes.UnavailableOffering{{OfferingKey: offering("", "a"), Scope: "pg-1", Why: "Odd"}}},
		{"a type that the zone does not sell", "InvalidFleetConfiguration", "Your requested instance type (m5.large) is not supported in your requested Availability Zone (a).", "", about("m5.large", "a", ""),
			[]instancetypes.UnavailableOffering{{OfferingKey: offering("m5.large", "a"), Why: "InvalidFleetConfiguration"}}},
		{"a subnet", awserrors.NoAddresses, "", "", about("m5.large", "a", "subnet-a"), []instancetypes.UnavailableOffering{{Scope: "subnet-a", Why: awserrors.NoAddresses}}},
		{"some subnet", awserrors.NoAddresses, "", "", about("m5.large", "a", ""), []instancetypes.UnavailableOffering{{OfferingKey: offering("m5.large", "a"), Why: awserrors.NoAddresses}}},
		{"spot", awserrors.SpotRoleMissing, "", "", about("m5.large", "a", "subnet-a"), []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot}, Why: awserrors.SpotRoleMissing}}},
	} {
		o.Group = c.group
		marks, other := splitErrors(o, []types.CreateFleetError{{ErrorCode: &c.code, ErrorMessage: &c.message, LaunchTemplateAndOverrides: c.about}})
		if d := gocmp.Diff(c.want, marks); d != "" || len(other) > 0 {
			t.Errorf("%s: others %v (-want +got):\n%s", c.what, other, d)
		}
	}
}
