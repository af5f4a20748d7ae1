package discovery

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/instancetypes"
)

// ears answers every call with body, and keeps what was asked for in words: the action, and what narrows it.
type ears struct {
	body, code string // code refuses what is asked
	heard      []string
}

func (e *ears) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	status, text := http.StatusOK, e.body
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		e.heard = append(e.heard, target[strings.LastIndexByte(target, '.')+1:]+heardJSON(body))
	} else if form, err := url.ParseQuery(string(body)); err == nil && form.Has("Action") {
		e.heard = append(e.heard, form.Get("Action")+heardForm(form))
	}
	header := http.Header{}
	switch {
	case e.code != "" && r.Header.Get("X-Amz-Target") != "":
		status, text = http.StatusBadRequest, `{"__type":"`+e.code+`","message":"m"}`
	case e.code != "":
		status, text = http.StatusBadRequest, "<Response><Errors><Error><Code>"+e.code+"</Code><Message>m</Message></Error></Errors></Response>"
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// heardForm are the filters, ids, names and owners of a request of EC2.
func heardForm(form url.Values) string {
	var out []string
	for n := 1; form.Has(fmt.Sprintf("Filter.%d.Name", n)); n++ {
		var values []string
		for k := 1; form.Has(fmt.Sprintf("Filter.%d.Value.%d", n, k)); k++ {
			values = append(values, form.Get(fmt.Sprintf("Filter.%d.Value.%d", n, k)))
		}
		out = append(out, form.Get(fmt.Sprintf("Filter.%d.Name", n))+"="+strings.Join(values, ","))
	}
	for key, values := range form {
		name, _, listed := strings.Cut(key, ".")
		if listed && name != "Filter" || name == "LocationType" {
			out = append(out, name+":"+strings.Join(values, ","))
		}
	}
	slices.Sort(out)
	return strings.Join(append([]string{""}, out...), " ")
}

// The images of a revision are asked for by their ids, those that can be launched alone; a refusal is no answer.
func TestFindImages(t *testing.T) {
	e := &ears{body: "<Response><imagesSet><item><imageId>ami-2</imageId></item></imagesSet></Response>"}
	f := ImageFinder{EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: e, Retryer: aws.NopRetryer{}})}
	found, err := f.FindImages(t.Context(), []string{"ami-1", "ami-2"})
	if diff := cmp.Diff([]string{"ami-2"}, found); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"DescribeImages image-id=ami-1,ami-2 state=available"}, e.heard); diff != "" {
		t.Error(diff)
	}
	e.code = "UnauthorizedOperation"
	if found, err := f.FindImages(t.Context(), []string{"ami-1"}); err == nil {
		t.Errorf("a refusal is no error: %v", found)
	}
}

// heardJSON are the filters, states and names of a request in JSON.
func heardJSON(body []byte) string {
	var in struct {
		Filters []struct{ Field, Value string }
		Name    string
		States  []string
	}
	if json.Unmarshal(body, &in) != nil {
		return " ?"
	}
	out := append([]string{in.Name}, in.States...)
	for _, f := range in.Filters {
		out = append(out, f.Field+"="+f.Value)
	}
	slices.Sort(out)
	return " " + strings.TrimSpace(strings.Join(out, " "))
}

func (e *ears) finder() *ClassResolver {
	return &ClassResolver{EC2: e.ec2(), SSM: ssm.New(ssm.Options{Region: "us-west-2", HTTPClient: e, Credentials: aws.AnonymousCredentials{}}), Cluster: "demo", Version: "1.36",
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
}

func (e *ears) ec2() *ec2.Client {
	return ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: e, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})
}

// What AWS is asked for each selector: terms are ORed, what is within one is ANDed, an id goes before a name and a name
// before tags, and what is not there to be used is not asked for.
func TestWhatIsAskedForAClass(t *testing.T) {
	tags := map[string]string{"team": "a", "env": "*"}
	for _, c := range []struct {
		what string
		spec awsv1.EC2NodeClassSpec
		ask  func(*ClassResolver, *awsv1.EC2NodeClass) error
		want []string
	}{
		{"subnets", awsv1.EC2NodeClassSpec{SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{Tags: tags}, {ID: "subnet-1", Tags: tags}, {Tags: map[string]string{"b": "c"}}, {ID: "subnet-2"}}},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				_, err := r.findSubnets(t.Context(), c)
				return err
			},
			[]string{"DescribeSubnets tag-key=env tag:team=a", "DescribeSubnets tag:b=c", "DescribeSubnets subnet-id=subnet-1,subnet-2"}},
		{"groups", awsv1.EC2NodeClassSpec{SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tags}, {Name: "n", Tags: tags}, {ID: "sg-1", Name: "n"}, {Name: "m"}}},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				_, err := r.findSecurityGroups(t.Context(), c)
				return err
			},
			[]string{"DescribeSecurityGroups tag-key=env tag:team=a", "DescribeSecurityGroups group-id=sg-1", "DescribeSecurityGroups group-name=n,m"}},
		{"images", awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{ID: "ami-1"}, {Name: "n"}, {Name: "n", Owner: "123"}, {Tags: tags}, {ID: "ami-2"}}},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				_, err := r.findImages(t.Context(), c)
				return err
			},
			[]string{"DescribeImages Owner:amazon Owner:self name=n state=available", "DescribeImages Owner:123 name=n state=available", "DescribeImages state=available tag-key=env tag:team=a",
				"DescribeImages image-id=ami-1,ami-2 state=available"}},
		{"reservations", awsv1.EC2NodeClassSpec{CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1", OwnerID: "1"}, {Tags: tags, OwnerID: "2"}, {InstanceMatchCriteria: "open"}}},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				_, err := r.findReservations(t.Context(), c)
				return err
			},
			[]string{"DescribeCapacityReservations CapacityReservationId:cr-1 state=active", "DescribeCapacityReservations owner-id=2 state=active tag-key=env tag:team=a",
				"DescribeCapacityReservations instance-match-criteria=open state=active"}},
		{"placement", awsv1.EC2NodeClassSpec{PlacementGroupSelector: &awsv1.PlacementGroupSelector{Name: "n"}},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				_, err := r.findPlacementGroup(t.Context(), c)
				return err
			},
			[]string{"DescribePlacementGroups GroupName:n state=available"}},
		{"placement by id", awsv1.EC2NodeClassSpec{PlacementGroupSelector: &awsv1.PlacementGroupSelector{ID: "pg-1"}},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				_, err := r.findPlacementGroup(t.Context(), c)
				return err
			},
			[]string{"DescribePlacementGroups GroupId:pg-1 state=available"}},
		{"templates of a class that goes", awsv1.EC2NodeClassSpec{},
			func(r *ClassResolver, c *awsv1.EC2NodeClass) error {
				return r.deleteTemplates(t.Context(), ec2Filter("tag:karpenter.k8s.aws/ec2nodeclass", c.Name))
			},
			[]string{"DescribeLaunchTemplates tag:eks:eks-cluster-name=demo tag:karpenter.k8s.aws/ec2nodeclass=web"}},
	} {
		e := &ears{body: "<Response></Response>"}
		class := &awsv1.EC2NodeClass{Spec: c.spec}
		class.Name = "web"
		if err := c.ask(e.finder(), class); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if d := cmp.Diff(c.want, e.heard); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
}

// What AWS is asked about the market: Linux without software that is paid for, in the region, types that nodes can
// have.
func TestWhatIsAskedAboutTheMarket(t *testing.T) {
	e := &ears{body: `{"PriceList":["{\"product\":{\"attributes\":{\"instanceType\":\"m5.large\"}},\"terms\":{\"OnDemand\":{\"b\":{\"priceDimensions\":{\"1\":{\"pricePerUnit\":{\"USD\":\"0.096\"}}}}}}}"]}`}
	r := &CatalogRefresher{region: "us-west-2", now: time.Now, ec2: e.ec2(), account: &accountReader{cluster: "demo",
		plans: savingsplans.New(savingsplans.Options{Region: "us-east-1", HTTPClient: e, Credentials: aws.AnonymousCredentials{}})},
		pricing: pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: e, Credentials: aws.AnonymousCredentials{}})}
	if _, err := r.onDemand(t.Context()); err != nil {
		t.Error(err)
	}
	e.body = "<Response></Response>"
	_, _ = r.readSpotPrices(t.Context(), time.Unix(0, 0)) // an empty history and an empty list of types are errors
	_, _ = r.readTypes(t.Context())
	if _, err := r.countForeignUse(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.reservedInstances(t.Context(), instancetypes.Catalog{}); err != nil {
		t.Error(err)
	}
	const list = "GetProducts capacitystatus=Used marketoption=OnDemand operatingSystem=Linux preInstalledSw=NA productFamily=Compute Instance"
	const where = " regionCode=us-west-2 serviceCode=AmazonEC2 tenancy="
	want := []string{list + where + "Shared", list + " (bare metal)" + where + "Dedicated",
		"DescribeSpotPriceHistory ProductDescription:Linux/UNIX ProductDescription:Linux/UNIX (Amazon VPC)",
		"DescribeInstanceTypeOfferings LocationType:availability-zone",
		"DescribeInstanceTypes processor-info.supported-architecture=x86_64,arm64 supported-virtualization-type=hvm",
		"DescribeInstances instance-state-name=pending,running", "DescribeCapacityReservations state=active", "DescribeReservedInstances state=active"}
	if d := cmp.Diff(want, e.heard); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// The preflight counts the nodes that run, whoever launched them.
func TestNodesAreCountedByTheTagOfTheirCluster(t *testing.T) {
	e := &ears{body: "<Response><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId></item><item><instanceId>i-2</instanceId></item></instancesSet></item>" +
		"<item><instancesSet><item><instanceId>i-3</instanceId></item></instancesSet></item></reservationSet></Response>"}
	var f preflight.Facts
	if err := (Preflight{EC2: e.ec2()}).countClusterNodes(t.Context(), preflight.StackPlan{Cluster: "demo"}, &f); err != nil || f.Nodes != 3 {
		t.Errorf("%d nodes, error %v", f.Nodes, err)
	}
	if d := cmp.Diff([]string{"DescribeInstances instance-state-name=running tag-key=kubernetes.io/cluster/demo"}, e.heard); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	e.code = "UnauthorizedOperation"
	if err := (Preflight{EC2: e.ec2()}).countClusterNodes(t.Context(), preflight.StackPlan{Cluster: "demo"}, &f); err == nil {
		t.Error("a refusal is no error")
	}
}

// A price list that is empty says nothing about prices: it is an error, and so is half of one.
func TestAnEmptyPriceListIsNone(t *testing.T) {
	e := &ears{body: `{"PriceList":[]}`}
	r := &CatalogRefresher{region: "us-west-2", pricing: pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: e, Credentials: aws.AnonymousCredentials{}})}
	if got, err := r.onDemand(t.Context()); err == nil {
		t.Errorf("prices %v and no error", got)
	}
}

// An entry of the price list that cannot be read keeps no other from being read; where none can be read the error says
// why.
func TestAnUnreadableEntryOfThePriceListIsLeftOut(t *testing.T) {
	entry := func(name, price string) string {
		return fmt.Sprintf("%q", fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q}},"terms":{"OnDemand":{"t":{"priceDimensions":{"d":{"pricePerUnit":{"USD":%q}}}}}}}`, name, price))
	}
	for _, test := range []struct {
		entries, why string
		want         map[string]float64
	}{
		{entry("m5.large", "n/a") + "," + entry("c5.large", "0.085") + `,"{",` + entry("r5.large", "0.126"), "",
			map[string]float64{"c5.large": 0.085, "r5.large": 0.126}},
		{entry("m5.large", "n/a"), "read price of m5.large", nil},
	} {
		e := &ears{body: `{"PriceList":[` + test.entries + `]}`}
		r := &CatalogRefresher{region: "us-west-2", pricing: pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: e, Credentials: aws.AnonymousCredentials{}})}
		got, err := r.onDemand(t.Context())
		if d := cmp.Diff(test.want, got); d != "" || (err != nil) != (test.why != "") || err != nil && !strings.Contains(err.Error(), test.why) {
			t.Errorf("error %v, want %q (-want +got):\n%s", err, test.why, d)
		}
	}
}

// Only what can be used counts: reservations that are active, and types that some zone sells.
func TestWhatCannotBeUsedIsLeftOut(t *testing.T) {
	item := func(id, state string) string {
		return "<item><capacityReservationId>" + id + "</capacityReservationId><state>" + state + "</state><availableInstanceCount>3</availableInstanceCount></item>"
	}
	e := &ears{body: "<Response><capacityReservationSet>" + item("cr-1", "active") + item("cr-2", "expired") + item("cr-3", "pending") + "</capacityReservationSet></Response>"}
	got, err := RemainingCapacity{e.ec2()}.RemainingReservations(t.Context(), []string{"cr-1", "cr-2", "cr-3"})
	if d := cmp.Diff(map[string]int64{"cr-1": 3}, got); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
	e.body = "<Response><instanceTypeOfferingSet><item><instanceType>m5.large</instanceType><location>b</location></item><item><instanceType>m5.large</instanceType><location>a</location></item>" +
		"</instanceTypeOfferingSet><instanceTypeSet><item><instanceType>m5.large</instanceType></item><item><instanceType>m9.none</instanceType></item></instanceTypeSet></Response>"
	facts, err := (&CatalogRefresher{ec2: e.ec2()}).readTypes(t.Context())
	if d := cmp.Diff([]instancetypes.Facts{{Name: "m5.large", Zones: []string{"a", "b"}}}, facts); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}

// What draws on commitments elsewhere: Linux on demand and on shared tenancy that is no node of ours, and room in
// reservations that nobody uses.
func TestWhatRunsElsewhere(t *testing.T) {
	instance := func(kind, more string, tags ...string) string {
		for i := 0; i < len(tags); i += 2 {
			more += "<tagSet><item><key>" + tags[i] + "</key><value>" + tags[i+1] + "</value></item></tagSet>"
		}
		return "<item><instancesSet><item><instanceType>" + kind + "</instanceType>" + more + "</item></instancesSet></item>"
	}
	place := func(tenancy string) string {
		return "<placement><availabilityZone>a</availabilityZone><tenancy>" + tenancy + "</tenancy></placement>"
	}
	node := place("default") + "<tagSet><item><key>eks:eks-cluster-name</key><value>demo</value></item><item><key>karpenter.sh/nodepool</key><value>p</value></item></tagSet>"
	idle := func(kind, more string) string {
		return "<item><instanceType>" + kind + "</instanceType><availabilityZone>b</availabilityZone><availableInstanceCount>2</availableInstanceCount>" + more + "</item>"
	}
	e := &ears{body: "<Response><reservationSet>" + instance("m1", place("default")) + instance("m1", place("default")) + instance("ours", node) +
		instance("others", strings.Replace(node, "demo", "other", 1)) + instance("spot", place("default")+"<instanceLifecycle>spot</instanceLifecycle>") + instance("dedicated", place("dedicated")) +
		instance("windows", place("default")+"<platform>windows</platform><platformDetails>Windows</platformDetails>") + instance("rhel", place("default")+"<platformDetails>Red Hat Enterprise Linux</platformDetails>") +
		"</reservationSet><capacityReservationSet>" + idle("m2", "") + idle("block", "<reservationType>capacity-block</reservationType>") + idle("dedicated", "<tenancy>dedicated</tenancy>") +
		strings.Replace(idle("full", ""), ">2<", ">0<", 1) + "</capacityReservationSet></Response>"}
	got, err := (&CatalogRefresher{ec2: e.ec2(), account: &accountReader{cluster: "demo"}}).countForeignUse(t.Context())
	if d := cmp.Diff([]instancetypes.RunningCount{{Type: "m1", Zone: "a", Count: 2}, {Type: "m2", Zone: "b", Count: 2}, {Type: "others", Zone: "a", Count: 1}}, got); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}

// A parameter that does not exist was not published; that SSM is busy or refuses does not make an image vanish.
func TestAParameterThatCannotBeRead(t *testing.T) {
	for code, fails := range map[string]bool{"ParameterNotFound": false, "ThrottlingException": true, "AccessDeniedException": true, "InternalServerError": true} {
		r := (&ears{code: code}).finder()
		r.SSM = ssm.New(ssm.Options{Region: "us-west-2", HTTPClient: &ears{code: code}, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})
		if got, err := r.readParameter(t.Context(), "/a"); got != "" || (err != nil) != fails {
			t.Errorf("%s: %q, error %v", code, got, err)
		}
	}
}

// A profile that the status names is kept where it is this class's and has its role, as one that Karpenter made; any
// other is the user's own.
func TestAProfileThatIsKept(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Name, class.Status.InstanceProfile = "web", "old"
	r := &ClassResolver{Cluster: "demo", Region: "us-west-2"}
	mine := r.profilePath(class)
	for _, c := range []struct {
		path, role string
		want       bool
	}{{mine, "node", true}, {mine, "other", false}, {"/", "node", false}, {"/karpenter/us-west-2/other/u/", "node", false}} {
		e := &ears{body: "<R><GetInstanceProfileResult><InstanceProfile><InstanceProfileName>old</InstanceProfileName><Path>" + c.path + "</Path><Roles><member><RoleName>" + c.role +
			"</RoleName></member></Roles></InstanceProfile></GetInstanceProfileResult></R>"}
		r.IAM = iam.New(iam.Options{Region: "us-east-1", HTTPClient: e, Credentials: aws.AnonymousCredentials{}})
		if got, err := r.keepsProfile(t.Context(), class, "new", "node"); got != c.want || err != nil {
			t.Errorf("of path %s with role %s: %t, error %v", c.path, c.role, got, err)
		}
	}
}

// Only what does not exist is none; whatever else goes wrong with a look-up is an error, and what AWS does not
// understand is the user's.
func TestLookUpsThatFail(t *testing.T) {
	class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{
		SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{ID: "subnet-1"}}, SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{ID: "sg-1"}},
		AMISelectorTerms: []awsv1.AMISelectorTerm{{ID: "ami-1"}}, CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}},
		PlacementGroupSelector: &awsv1.PlacementGroupSelector{Name: "n"}}}
	looks := map[string]func(*ClassResolver) error{
		"subnets":      func(r *ClassResolver) error { _, err := r.findSubnets(t.Context(), class); return err },
		"groups":       func(r *ClassResolver) error { _, err := r.findSecurityGroups(t.Context(), class); return err },
		"images":       func(r *ClassResolver) error { _, err := r.findImages(t.Context(), class); return err },
		"reservations": func(r *ClassResolver) error { _, err := r.findReservations(t.Context(), class); return err },
		"placement":    func(r *ClassResolver) error { _, err := r.findPlacementGroup(t.Context(), class); return err },
		"rooms": func(r *ClassResolver) error {
			_, err := (RemainingCapacity{r.EC2}).RemainingReservations(t.Context(), []string{"cr-1", "cr-2"})
			return err
		},
		"addresses": func(r *ClassResolver) error {
			_, err := (RemainingCapacity{r.EC2}).RemainingAddresses(t.Context(), []string{"subnet-1"})
			return err
		},
	}
	none := map[string]string{"images": "InvalidAMIID.NotFound InvalidAMIID.Malformed", "reservations": "InvalidCapacityReservationId.NotFound", "rooms": "InvalidCapacityReservationId.NotFound",
		"placement": "InvalidPlacementGroup.Unknown"}
	for what, look := range looks {
		for _, code := range []string{"UnauthorizedOperation", "RequestLimitExceeded", "InternalError", "InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidCapacityReservationId.NotFound", "InvalidPlacementGroup.Unknown"} {
			is := slices.Contains(strings.Fields(none[what]), code)
			related := is || !strings.HasPrefix(code, "Invalid")
			if err := look((&ears{code: code}).finder()); related && (err == nil) != is {
				t.Errorf("%s, answered %s: error %v", what, code, err)
			}
		}
	}
	for code, terms := range map[string]bool{"InvalidParameterValue": true, "InvalidSubnetID.Malformed": true, "RequestLimitExceeded": false} {
		err := looks["subnets"]((&ears{code: code}).finder())
		if got := strings.Contains(fmt.Sprint(err), "AWS does not take a selector term"); got != terms {
			t.Errorf("%s is the user's: %t (%v)", code, got, err)
		}
	}
}
