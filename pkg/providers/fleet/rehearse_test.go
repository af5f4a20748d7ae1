package fleet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// oneByOne lets one request in at a time.
type oneByOne struct {
	mu sync.Mutex
	n  interface {
		Do(r *http.Request) (*http.Response, error)
	}
}

func (o *oneByOne) Do(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n.Do(r)
}

// stage answers dry runs, each with a status and a code by its action and subnet; what is no dry run is a fault.
type stage struct {
	t       *testing.T
	answers map[string]string
	heard   []string
}

func (s *stage) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, "<Response><launchTemplates><item><launchTemplateName>x</launchTemplateName></item></launchTemplates></Response>"
	if action := form.Get("Action"); action == "CreateFleet" || action == "RunInstances" {
		what := strings.TrimSpace(action + " " + form.Get("NetworkInterface.1.SubnetId"))
		s.heard = append(s.heard, what)
		if form.Get("DryRun") != "true" {
			s.t.Errorf("%s is no dry run", what)
		}
		status, text = http.StatusPreconditionFailed, "DryRunOperation"
		if namesAPoolTwice(form) {
			status, text = http.StatusBadRequest, "InvalidFleetConfig"
		}
		if a, ok := s.answers[what]; ok {
			if _, err := fmt.Sscanf(a, "%d %s", &status, &text); err != nil {
				s.t.Error(err)
			}
		}
		text = "<Response><Errors><Error><Code>" + text + "</Code><Message>m</Message></Error></Errors></Response>"
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// namesAPoolTwice reports whether a fleet has a type in a zone twice, in whichever subnets. EC2 refuses such a request:
// "The fleet configuration contains duplicate instance pools".
func namesAPoolTwice(form url.Values) bool {
	seen := map[string]bool{}
	for key := range form {
		if override, is := strings.CutSuffix(key, ".AvailabilityZone"); is && strings.Contains(key, ".Overrides.") {
			pool := form.Get(override+".InstanceType") + " " + form.Get(key)
			if seen[pool] {
				return true
			}
			seen[pool] = true
		}
	}
	return false
}

// A class with two subnets in a zone is rehearsed as any other: the fleet names one of them, and each is asked about
// afterwards.
func TestARehearsalWithTwoSubnetsInAZone(t *testing.T) {
	for answer, want := range map[string]string{"": "CreateFleet, RunInstances subnet-a", "400 InvalidParameterValue": "CreateFleet, RunInstances subnet-a, RunInstances subnet-a2"} {
		s := &stage{t: t, answers: map[string]string{}}
		if answer != "" {
			s.answers["RunInstances subnet-a"] = answer
		}
		f := &Fleet{Cluster: "demo", EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: s, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
		o := order()
		second := o.Templates[0].Overrides[0]
		second.SubnetID = "subnet-a2"
		o.Templates[0].Overrides = append(o.Templates[0].Overrides, second)
		if err := f.DryRun(t.Context(), o); err != nil {
			t.Errorf("subnet-a answered %q: %v", answer, err)
		}
		if heard := strings.Join(s.heard, ", "); heard != want {
			t.Errorf("subnet-a answered %q: asked %s, want %s", answer, heard, want)
		}
		if len(o.Templates[0].Overrides) != 2 {
			t.Errorf("the order was changed: %v", o.Templates[0].Overrides)
		}
	}
}

// A rehearsal changes nothing in EC2. A no is a refusal, unless EC2 was busy or failed: then nobody knows. Of several
// subnets one that would do is enough, and else the first no tells.
func TestARehearsal(t *testing.T) {
	const run, busy = "RunInstances subnet-a, RunInstances subnet-b", "unknown"
	for _, c := range []struct {
		answers map[string]string
		want    string
		heard   string
	}{
		{nil, "yes", "CreateFleet, RunInstances subnet-a"},
		{map[string]string{"CreateFleet": "403 UnauthorizedOperation"}, "CreateFleet UnauthorizedOperation", "CreateFleet"},
		{map[string]string{"CreateFleet": "503 RequestLimitExceeded"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "400 RequestLimitExceeded"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "400 ThrottlingException"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "500 InternalError"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "400 InvalidLaunchTemplateName.NotFoundException"}, busy, "CreateFleet"},
		{map[string]string{"RunInstances subnet-a": "400 InvalidParameterValue"}, "yes", "CreateFleet, " + run},
		{map[string]string{"RunInstances subnet-a": "400 InvalidParameterValue", "RunInstances subnet-b": "403 UnauthorizedOperation"}, "RunInstances InvalidParameterValue", "CreateFleet, " + run},
		{map[string]string{"RunInstances subnet-a": "400 RequestLimitExceeded"}, busy, "CreateFleet, RunInstances subnet-a"},
	} {
		s := &stage{t: t, answers: c.answers}
		f := &Fleet{Cluster: "demo", EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: s, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
		o := order()
		o.Templates[0].Overrides = append(o.Templates[0].Overrides, launch.Override{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "b"}, SubnetID: "subnet-b"})
		err := f.DryRun(t.Context(), o)
		got := "yes"
		if no, ok := errors.AsType[*launch.RefusedError](err); ok {
			got = no.Call + " " + no.Code
		} else if err != nil {
			got = busy
		}
		if heard := strings.Join(s.heard, ", "); got != c.want || heard != c.heard {
			t.Errorf("answered %v: %s (%v) after %s\nwanted %s after %s", c.answers, got, err, heard, c.want, c.heard)
		}
	}
}

// filled is a value of the type with something in every field and two items in every list.
func filled(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			filled(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("v", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	}
}

// sent keeps the forms of the requests, by action.
type sent map[string]url.Values

func (s sent) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	s[form.Get("Action")] = form
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<Response></Response>")), Request: r}, nil
}

// The dry run of RunInstances says all that the launch template says, and the tags of what is launched: a policy that
// looks for any of it in the request finds it. A subnet, and what makes it a dry run, is all that it has beside.
func TestTheDryRunSaysAllThatTheLaunchSays(t *testing.T) {
	s := sent{}
	f := &Fleet{Cluster: "demo", EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: s, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
	o, n := order(), 0
	filled(reflect.ValueOf(&o.Templates[0]).Elem(), &n)
	o.Templates[0].Overrides = o.Templates[0].Overrides[:1]
	if err := f.DryRun(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Action": "RunInstances", "Version": "2016-11-15", "DryRun": "true", "MinCount": "1", "MaxCount": "1",
		"LaunchTemplate.LaunchTemplateName": o.Templates[0].Name, "LaunchTemplate.Version": "$Latest",
		"InstanceType": o.Templates[0].Overrides[0].Type, "NetworkInterface.1.SubnetId": o.Templates[0].Overrides[0].SubnetID, "NetworkInterface.2.SubnetId": o.Templates[0].Overrides[0].SubnetID,
		"TagSpecification.3.ResourceType": "instance", "TagSpecification.3.Tag.1.Key": "karpenter.sh/nodeclaim", "TagSpecification.3.Tag.1.Value": "web-1",
		"TagSpecification.3.Tag.2.Key": "karpenter.sh/nodepool", "TagSpecification.3.Tag.2.Value": "web",
		"TagSpecification.4.ResourceType": "volume", "TagSpecification.4.Tag.1.Key": "karpenter.sh/nodepool", "TagSpecification.4.Tag.1.Value": "web"}
	for k := range s["CreateLaunchTemplate"] {
		if name, ok := strings.CutPrefix(k, "LaunchTemplateData."); ok {
			want[name] = s["CreateLaunchTemplate"].Get(k)
		}
	}
	want["ImageId"] = o.Templates[0].Overrides[0].ImageID
	got := map[string]string{}
	for k := range s["RunInstances"] {
		if k != "ClientToken" {
			got[k] = s["RunInstances"].Get(k)
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(want) < 60 || want["MetadataOptions.HttpTokens"] == "" {
		t.Errorf("%d parameters of the launch; request (-want +got):\n%s", len(want), d)
	}
}
