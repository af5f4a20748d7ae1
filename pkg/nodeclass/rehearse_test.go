package nodeclass_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/bootstrap"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

// An answer of AWS.
type coded struct{ code, message string }

func (c coded) Error() string        { return c.code + ": " + c.message }
func (c coded) ErrorCode() string    { return c.code }
func (c coded) ErrorMessage() string { return c.message }

func refuse(call, code, message string) error {
	return fmt.Errorf("rehearse: %w", &launch.RefusedError{Call: call, Code: code, Message: message})
}

func TestWhatARehearsalMeans(t *testing.T) {
	const invalid = "Value (p) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
	for _, test := range []struct {
		name   string
		err    error
		change func(c *awsv1.EC2NodeClass)
		want   nodeclass.DryRunVerdict
	}{
		{"all well", nil, nil, nodeclass.DryRunVerdict{Keep: true}},
		{"no answer", errors.New("connection refused"), nil, nodeclass.DryRunVerdict{Unknown: true}},
		{"throttled", coded{"RequestLimitExceeded", "slow down"}, nil, nodeclass.DryRunVerdict{Unknown: true}},
		{"user data", &bootstrap.Error{Reason: "UserDataMalformed", Message: "spec.userData is no TOML"}, nil, nodeclass.DryRunVerdict{Reason: "UserDataMalformed",
			Message: "user data: spec.userData is no TOML: change spec.userData or spec.kubelet"}},
		{"template denied", refuse("CreateLaunchTemplate", "UnauthorizedOperation", "You are not"), nil, nodeclass.DryRunVerdict{Keep: true, Reason: "CreateLaunchTemplateAuthCheckFailed",
			Message: "CreateLaunchTemplate of a launch, as a dry run: no policy allows the call: let the role of the functions launch with it, or change the class. EC2 says: You are not"}},
		{"fleet denied by SCP", refuse("CreateFleet", "UnauthorizedOperation", "with an explicit deny in a service control policy"), nil,
			nodeclass.DryRunVerdict{Keep: true, Reason: "CreateFleetAuthCheckFailed",
				Message: "CreateFleet of a launch, as a dry run: a service control policy denies the call: let the role of the functions launch with it, or change the class. EC2 says: with an explicit deny in a service control policy"}},
		{"instances denied", refuse("RunInstances", "UnauthorizedOperation", "x"), nil, nodeclass.DryRunVerdict{Keep: true, Reason: "RunInstancesAuthCheckFailed",
			Message: "RunInstances of a launch, as a dry run: no policy allows the call: let the role of the functions launch with it, or change the class. EC2 says: x"}},
		{"image of others", refuse("RunInstances", "AuthFailure", "Not authorized for images: [ami-1]"), nil, nodeclass.DryRunVerdict{Keep: true, Reason: "AMIAuthorizationFailure",
			Message: "RunInstances of a launch, as a dry run: the account may not use the AMI. EC2 says: Not authorized for images: [ami-1]"}},
		{"networks", refuse("RunInstances", "InvalidParameter", "Security group sg-1 and subnet subnet-1 belong to different networks."), nil,
			nodeclass.DryRunVerdict{Keep: true, Reason: "SecurityGroupSubnetVPCMismatch",
				Message: "RunInstances of a launch, as a dry run: security groups and subnet are of different VPCs. EC2 says: Security group sg-1 and subnet subnet-1 belong to different networks."}},
		{"long user data", refuse("CreateLaunchTemplate", "InvalidUserData.Malformed", "User data is limited to 16384 bytes"), nil,
			nodeclass.DryRunVerdict{Keep: true, Reason: "UserDataSizeLimitExceeded", Message: "EC2 says: User data is limited to 16384 bytes: shorten spec.userData"}},
		{"new profile", refuse("RunInstances", "InvalidParameterValue", invalid), nil, nodeclass.DryRunVerdict{}},
		{"old profile", refuse("RunInstances", "InvalidParameterValue", invalid), func(c *awsv1.EC2NodeClass) {
			c.StatusConditions().SetTrue(awsv1.ConditionInstanceProfileReady, noon().Add(-time.Hour))
		}, nodeclass.DryRunVerdict{Reason: "InstanceProfileNotFound", Message: "EC2 knows no instance profile p: create it, or change spec.instanceProfile or spec.role"}},
		{"profile of the user's", refuse("RunInstances", "InvalidParameterValue", invalid), func(c *awsv1.EC2NodeClass) {
			mine := "p"
			c.Spec.Role, c.Spec.InstanceProfile = "", &mine
		}, nodeclass.DryRunVerdict{Reason: "InstanceProfileNotFound", Message: "EC2 knows no instance profile p: create it, or change spec.instanceProfile or spec.role"}},
		{"no word for it", refuse("RunInstances", "Unheard", "of"), nil, nodeclass.DryRunVerdict{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := class()
			c.Status.InstanceProfile = "p"
			c.StatusConditions().SetTrue(awsv1.ConditionInstanceProfileReady, noon().Add(-time.Minute))
			if test.change != nil {
				c.Status.Conditions = nil
				test.change(c)
			}
			if d := cmp.Diff(test.want, nodeclass.JudgeDryRun(c, test.err, noon())); d != "" {
				t.Errorf("verdict (-want +got):\n%s", d)
			}
		})
	}
}

func TestAVerdictHoldsForTheClassAsItIs(t *testing.T) {
	c := class()
	nodeclass.UpdateStatus(c, found(), noon())
	c.Status.Subnets = []awsv1.Subnet{{ID: "subnet-1"}, {ID: "subnet-2"}}
	if _, ok := nodeclass.RecallVerdict(c, time.Time{}, noon()); ok {
		t.Error("a class that was never rehearsed has a verdict")
	}
	refused := nodeclass.DryRunVerdict{Reason: "CreateFleetAuthCheckFailed", Message: "no", Keep: true}
	for after, want := range map[time.Duration]bool{-time.Minute: false, 0: true, 2*time.Minute - time.Second: true, 2 * time.Minute: false} {
		c.Annotations = map[string]string{v1.AnnotationDryRunResult: nodeclass.VerdictAnnotation(c, refused, noon())}
		if got, ok := nodeclass.RecallVerdict(c, time.Time{}, noon().Add(after)); ok != want || ok && (got.Reason != refused.Reason || got.Message != refused.Message) {
			t.Errorf("a refusal after %s: holds %t, want %t; %+v", after, ok, want, got)
		}
	}
	v := nodeclass.DryRunVerdict{Keep: true}
	c.Annotations = map[string]string{v1.AnnotationDryRunResult: nodeclass.VerdictAnnotation(c, v, noon())}
	for deployed, want := range map[time.Time]bool{noon().Add(-time.Hour): true, noon(): true, noon().Add(time.Second): false} {
		if _, ok := nodeclass.RecallVerdict(c, deployed, noon().Add(time.Minute)); ok != want {
			t.Errorf("deployed at %s: holds %t, want %t", deployed, ok, want)
		}
	}
	for _, test := range []struct {
		name   string
		after  time.Duration
		change func(c *awsv1.EC2NodeClass)
		want   bool
	}{
		{"at once", 0, nil, true},
		{"just before the half hour", 30*time.Minute - time.Second, nil, true},
		{"after it", 30 * time.Minute, nil, false},
		{"before it was given", -time.Minute, nil, false},
		{"another order of subnets", 0, func(c *awsv1.EC2NodeClass) { slices.Reverse(c.Status.Subnets) }, true},
		{"a condition", 0, func(c *awsv1.EC2NodeClass) { c.Status.Conditions = nil }, true},
		{"a subnet less", 0, func(c *awsv1.EC2NodeClass) { c.Status.Subnets = c.Status.Subnets[:1] }, false},
		{"another profile", 0, func(c *awsv1.EC2NodeClass) { c.Status.InstanceProfile = "other" }, false},
		{"another image", 0, func(c *awsv1.EC2NodeClass) { c.Status.AMIs[0].ID = "ami-9" }, false},
		{"another tag", 0, func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"a": "b"} }, false},
		{"no verdict", 0, func(c *awsv1.EC2NodeClass) { c.Annotations[v1.AnnotationDryRunResult] = "{" }, false},
	} {
		changed := c.DeepCopy()
		if test.change != nil {
			test.change(changed)
		}
		got, ok := nodeclass.RecallVerdict(changed, time.Time{}, noon().Add(test.after))
		if ok != test.want || ok && (got.Reason != v.Reason || got.Message != v.Message) {
			t.Errorf("%s: holds %t, want %t; %+v", test.name, ok, test.want, got)
		}
	}
}

// In the ten minutes after a deployment a denial says nothing; every other refusal does.
func TestADenialAfterADeployment(t *testing.T) {
	for code, denied := range map[string]bool{"UnauthorizedOperation": true, "AccessDenied": true, "InvalidAMIID.NotFound": false} {
		v := nodeclass.JudgeDryRun(class(), refuse("RunInstances", code, "no"), noon())
		for after, settling := range map[time.Duration]bool{0: true, 10*time.Minute - time.Second: true, 10 * time.Minute: false} {
			got := v.AfterDeployment(noon(), noon().Add(after))
			if got.Unknown != (denied && settling) || !got.Unknown && got != v {
				t.Errorf("%s, %s after the deployment: %+v", code, after, got)
			}
		}
		if got := v.AfterDeployment(time.Time{}, noon()); got != v {
			t.Errorf("%s, nobody knows of a deployment: %+v", code, got)
		}
	}
}

func TestTheVerdictStandsInTheCondition(t *testing.T) {
	c, r := class(), found()
	r.Verdict = &nodeclass.DryRunVerdict{Unknown: true}
	nodeclass.UpdateStatus(c, r, noon())
	k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded)
	if k.Status != metav1.ConditionUnknown || nodeclass.IsReady(c) {
		t.Errorf("not asked yet: %s", k.Status)
	}
	r.Verdict = &nodeclass.DryRunVerdict{Reason: "CreateFleetAuthCheckFailed", Message: "no"}
	nodeclass.UpdateStatus(c, r, noon())
	want := []string{"Ready=False UnhealthyDependents: ValidationSucceeded=False", "ValidationSucceeded=False CreateFleetAuthCheckFailed: no"}
	if d := cmp.Diff(want, conditions(c.Status.Conditions)); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
	r.Verdict = &nodeclass.DryRunVerdict{Unknown: true}
	if nodeclass.UpdateStatus(c, r, noon()) {
		t.Error("an answer that did not come changed something")
	}
	r.Verdict = &nodeclass.DryRunVerdict{}
	if nodeclass.UpdateStatus(c, r, noon()); !nodeclass.IsReady(c) {
		t.Errorf("accepted: %v", conditions(c.Status.Conditions))
	}
}

func TestTheRehearsedClaimsAreOfThePools(t *testing.T) {
	pool := func(name, class, family string) v1.NodePool {
		return *read[v1.NodePool](t, `{metadata: {name: `+name+`}, spec: {template: {metadata: {labels: {team: a}}, spec: {nodeClassRef: {group: g, kind: k, name: `+class+`},
  taints: [{key: a, effect: NoSchedule}], startupTaints: [{key: b, value: c, effect: NoExecute}], requirements: [{key: f, operator: In, values: [`+family+`]}]}}}}`)
	}
	all := nodeclass.RehearsalClaims(class(), []v1.NodePool{pool("a", "other", "x"), pool("c", "default", "w"), pool("b", "default", "z")})
	if got := all[0]; len(all) != 2 || got.Pool != "b" || got.Labels["team"] != "a" || !got.Requirements.Has("f", "z") || got.Requirements.Has("f", "w") || all[1].Pool != "c" || !all[1].Requirements.Has("f", "w") {
		t.Errorf("claims %+v", all)
	}
	if d := cmp.Diff([]cluster.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "b", Value: "c", Effect: "NoExecute"}}, all[0].Taints); d != "" {
		t.Errorf("taints (-want +got):\n%s", d)
	}
	if got := nodeclass.RehearsalClaims(class(), []v1.NodePool{pool("b", "default", "z"), pool("c", "default", "w"), {}}); len(got) != 2 || got[0].Pool != "b" {
		t.Errorf("in another order: %+v", got)
	}
	bad := pool("a", "default", "y")
	bad.Spec.Template.Spec.Taints[0].Value = "no taint's"
	if got := nodeclass.RehearsalClaims(class(), []v1.NodePool{bad, pool("b", "default", "z")}); len(got) != 1 || got[0].Pool != "b" {
		t.Errorf("beside a pool that launches nothing: %+v", got)
	}
	if got := nodeclass.RehearsalClaims(class(), nil); len(got) != 1 || got[0].Pool != "none" {
		t.Errorf("without a pool: %+v", got)
	}
}

// A look-up that fails says so on the class, and a throttled one leaves what was found.
func TestALookUpThatFails(t *testing.T) {
	denied := fmt.Errorf("describe subnets: %w", coded{"UnauthorizedOperation", "User: refresh is not authorized to perform: ec2:DescribeSubnets"})
	throttled := fmt.Errorf("describe subnets: %w", coded{"RequestLimitExceeded", "slow down"})
	term := &nodeclass.TermError{Why: "describe subnets: AWS does not take it"}
	for _, test := range []struct {
		name    string
		before  bool // found before
		edited  bool // since then
		err     error
		want    string
		subnets int
	}{
		{"denied at first", false, false, denied, "SubnetsReady=False Unauthorized: the role of the function refresh may not look: User: refresh is not authorized to perform: ec2:DescribeSubnets", 0},
		{"denied later", true, false, denied, "", 1},
		{"denied after a change", true, true, denied, "SubnetsReady=False Unauthorized: the role of the function refresh may not look: User: refresh is not authorized to perform: ec2:DescribeSubnets", 1},
		{"throttled at first", false, false, throttled, "SubnetsReady=Unknown LookUpFailed: it could not be looked up, the next refresh tries again: RequestLimitExceeded", 0},
		{"throttled later", true, false, throttled, "", 1},
		{"throttled after a change", true, true, throttled, "SubnetsReady=Unknown LookUpFailed: it could not be looked up, the next refresh tries again: RequestLimitExceeded", 1},
		{"malformed", true, false, term, "SubnetsReady=False SubnetsNotFound: describe subnets: AWS does not take it", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, r := class(), found()
			if test.before {
				nodeclass.UpdateStatus(c, r, noon())
			}
			if test.edited {
				c.Generation++
			}
			r.Subnets, r.SubnetsErr = nil, test.err
			nodeclass.UpdateStatus(c, r, noon())
			got := conditions(c.Status.Conditions)
			i := slices.IndexFunc(got, func(k string) bool { return strings.HasPrefix(k, "SubnetsReady") })
			if text := strings.Join(append(got, "")[max(i, 0):max(i, 0)+1], ""); i >= 0 && text != test.want || i < 0 && test.want != "" || len(c.Status.Subnets) != test.subnets {
				t.Errorf("%d subnets, conditions %v\nwant %s", len(c.Status.Subnets), got, test.want)
			}
			if isTerm := r.JoinErrors() == nil; isTerm != (test.name == "malformed") {
				t.Errorf("error is %v", r.JoinErrors())
			}
		})
	}
}

// A term that AWS does not take voids what the class had found by it, of every kind, and of that kind only.
func TestATermThatIsMalformedVoidsItsList(t *testing.T) {
	term := &nodeclass.TermError{Why: "AWS does not take it"}
	for want, change := range map[string]func(r *nodeclass.Resolved){
		"0 images, 1 subnets, 1 groups, 1 reservations": func(r *nodeclass.Resolved) { r.ImagesErr = term },
		"1 images, 0 subnets, 1 groups, 1 reservations": func(r *nodeclass.Resolved) { r.SubnetsErr = term },
		"1 images, 1 subnets, 0 groups, 1 reservations": func(r *nodeclass.Resolved) { r.GroupsErr = term },
		"1 images, 1 subnets, 1 groups, 0 reservations": func(r *nodeclass.Resolved) { r.ReservationsErr = term },
	} {
		c, r := class(), found()
		r.Reservations = []awsv1.CapacityReservation{{ID: "cr-1", InstanceMatchCriteria: "open", ReservationType: "default"}}
		nodeclass.UpdateStatus(c, r, noon())
		change(&r)
		nodeclass.UpdateStatus(c, r, noon())
		got := fmt.Sprintf("%d images, %d subnets, %d groups, %d reservations",
			len(c.Status.AMIs), len(c.Status.Subnets), len(c.Status.SecurityGroups), len(c.Status.CapacityReservations))
		if got != want || nodeclass.IsReady(c) {
			t.Errorf("%s, ready %t; want %s", got, nodeclass.IsReady(c), want)
		}
	}
}
