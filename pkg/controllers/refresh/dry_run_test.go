package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/testing/controllertest"
)

// stage answers rehearsals by class or by instance type, and remembers what was asked.
type stage struct {
	answers map[string]error
	asked   []launch.Order
}

func (s *stage) DryRun(_ context.Context, o launch.Order) error {
	s.asked = append(s.asked, o)
	if err := s.answers[o.Templates[0].Overrides[0].Type]; err != nil {
		return err
	}
	for _, t := range o.Tags {
		if t.Key == launch.TagNodeClass {
			return s.answers[t.Value]
		}
	}
	return errors.New("the order names no class")
}

// theatre is a shop with classes whose launches are rehearsed.
type theatre struct {
	*controllertest.RefreshWorld
	*stage
	now    time.Time
	paused []time.Duration

	deployed time.Time
	rules    cluster.Settings
	wakes    func() // what happens while refresh waits
}

func newTheatre(classes ...string) *theatre {
	th := &theatre{RefreshWorld: controllertest.NewRefreshWorld(), stage: &stage{answers: map[string]error{}}, now: time.Unix(1_800_000_000, 0)}
	for _, name := range classes {
		c := th.AddClass(name)
		c.Spec.Role = "node"
		th.Found[name] = nodeclass.Resolved{Images: []nodeclass.Image{{ID: "ami-1", Arch: "amd64"}}, Profile: "p", ServiceCIDR: "10.0.0.0/16",
			Subnets: []nodeclass.Subnet{{ID: "subnet-1", Zone: "us-west-2a", ZoneID: "usw2-az2"}}, SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1"}}}
	}
	return th
}

func (th *theatre) play(t *testing.T) error {
	t.Helper()
	th.Did, th.asked, th.paused = nil, nil, nil
	r := refresh.Controller{Every: 5 * time.Minute, Deps: controllers.Deps{Record: th.RefreshWorld, Rules: th.rules, Now: func() time.Time { return th.now }, Log: slog.New(slog.DiscardHandler)},
		Finder: th.RefreshWorld, Classes: th.RefreshWorld, Pools: th.RefreshWorld, Nodes: th.RefreshWorld, Market: th.RefreshWorld, Overlays: th.RefreshWorld, Buffers: th.RefreshWorld,
		Prices: th.RefreshWorld, Rehearse: th.stage, Cluster: launch.Cluster{Name: "demo", CABundle: "ca", ServiceCIDR: "10.0.0.0/16"}, Deployed: th.deployed}
	r.Pause = func(_ context.Context, d time.Duration) error {
		th.paused = append(th.paused, d)
		if th.wakes != nil {
			th.wakes()
		}
		return nil
	}
	return r.Run(t.Context())
}

func (th *theatre) validation(class string) string {
	k, _ := th.Classes[class].StatusConditions().Get(awsv1.ConditionValidationSucceeded)
	return string(k.Status) + " " + k.Reason
}

func TestALaunchIsRehearsedOnceAndTheVerdictIsKept(t *testing.T) {
	th := newTheatre("good", "denied")
	th.answers["denied"] = &launch.RefusedError{Call: "CreateFleet", Code: "UnauthorizedOperation", Message: "no"}
	for _, step := range []struct {
		after time.Duration
		asked int
	}{{0, 2}, {time.Minute, 0}, {4 * time.Minute, 1}, {10 * time.Minute, 1}, {15 * time.Minute, 2}, {time.Minute, 0}} {
		th.now = th.now.Add(step.after)
		if err := th.play(t); err != nil {
			t.Fatal(err)
		}
		if len(th.asked) != step.asked {
			t.Errorf("at %s: %d rehearsals, want %d", th.now, len(th.asked), step.asked)
		}
		if good, denied := th.validation("good"), th.validation("denied"); good != "True ValidationSucceeded" || denied != "False CreateFleetAuthCheckFailed" {
			t.Errorf("at %s: %s and %s", th.now, good, denied)
		}
	}
	if !nodeclass.IsReady(th.Classes["good"]) || nodeclass.IsReady(th.Classes["denied"]) {
		t.Errorf("ready: %v", th.Ready())
	}
	delete(th.answers, "denied")
	c := th.Classes["denied"]
	c.Generation++
	c.Spec.Tags = map[string]string{"a": "b"}
	th.Touch(&c.ObjectMeta)
	if err := th.play(t); err != nil || len(th.asked) != 1 || !nodeclass.IsReady(th.Classes["denied"]) {
		t.Errorf("after a change: error %v, %d rehearsals, ready %v", err, len(th.asked), th.Ready())
	}
}

// In a cluster of IPv6 no launch of a Xen type is rehearsed, for none will be made.
func TestNoXenTypeIsRehearsedForIPv6(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		th := newTheatre("good")
		th.rules.IPv6 = ipv6
		th.AddPool("xen", "good")
		th.Pools["xen"].Spec.Template.Spec.Requirements = []v1.Requirement{{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"m4.large"}}}
		if err := th.play(t); err != nil {
			t.Fatal(err)
		}
		xen := slices.ContainsFunc(th.asked, func(o launch.Order) bool {
			return slices.ContainsFunc(o.Templates, func(l launch.Template) bool {
				return slices.ContainsFunc(l.Overrides, func(v launch.Override) bool { return v.Type == "m4.large" })
			})
		})
		if xen == ipv6 {
			t.Errorf("IPv6 %t: m4.large is rehearsed %t, of %d orders", ipv6, xen, len(th.asked))
		}
	}
}

// An instance type that a policy denies leaves the class Ready while EC2 takes another; a refusal that is not about the
// type is not asked about again.
func TestADeniedTypeIsNotADeniedClass(t *testing.T) {
	denied := &launch.RefusedError{Call: "RunInstances", Code: "UnauthorizedOperation", Message: "no"}
	missing := &launch.RefusedError{Call: "RunInstances", Code: "InvalidAMIID.NotFound", Message: "no"}
	typesOf := func(th *theatre) (types []string) {
		for _, o := range th.asked {
			types = append(types, o.Templates[0].Overrides[0].Type)
		}
		return types
	}
	th := newTheatre("default")
	if err := th.play(t); err != nil || len(th.asked) != 1 {
		t.Fatalf("error %v, %d rehearsals", err, len(th.asked))
	}
	first := typesOf(th)[0]
	th.now, th.answers[first] = th.now.Add(time.Hour), denied
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["default"]) || len(th.asked) != 2 || typesOf(th)[1] == first {
		t.Errorf("the cheapest type denied: error %v, ready %v, asked about %v", err, th.Ready(), typesOf(th))
	}
	th.now, th.answers["default"] = th.now.Add(time.Hour), denied
	if err := th.play(t); err != nil || th.validation("default") != "False RunInstancesAuthCheckFailed" || len(th.asked) != 4 {
		t.Errorf("all denied: error %v, %s, asked about %v", err, th.validation("default"), typesOf(th))
	}
	th.now, th.answers[first] = th.now.Add(time.Hour), missing
	if err := th.play(t); err != nil || th.validation("default") != "False AMINotFound" || len(th.asked) != 1 {
		t.Errorf("no image: error %v, %s, asked about %v", err, th.validation("default"), typesOf(th))
	}
	th.now, th.answers[first], th.answers["default"] = th.now.Add(time.Hour), denied, errors.New("connection refused")
	if err := th.play(t); err != nil || th.validation("default") != "False AMINotFound" || len(th.asked) != 8 || len(th.paused) != 3 {
		t.Errorf("no answer about the second: error %v, %s, asked about %v", err, th.validation("default"), typesOf(th))
	}
}

// After a deployment EC2 is asked again, whatever it said before, and a denial is none: what the deployment allows is
// not known everywhere at once.
func TestADeploymentVoidsVerdicts(t *testing.T) {
	th := newTheatre("default")
	denied := &launch.RefusedError{Call: "CreateFleet", Code: "UnauthorizedOperation", Message: "no"}
	th.answers["default"] = denied
	if err := th.play(t); err != nil || th.validation("default") != "False CreateFleetAuthCheckFailed" {
		t.Fatalf("error %v, %s", err, th.validation("default"))
	}
	th.now = th.now.Add(10 * time.Second)
	th.deployed = th.now
	delete(th.answers, "default")
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["default"]) || len(th.asked) != 1 {
		t.Errorf("deployed: error %v, ready %v, %d rehearsals", err, th.Ready(), len(th.asked))
	}
	th.now = th.now.Add(10 * time.Second)
	th.deployed, th.answers["default"] = th.now, denied
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["default"]) || len(th.asked) != 1 {
		t.Errorf("denied just after: error %v, ready %v, %d rehearsals", err, th.Ready(), len(th.asked))
	}
	th.now = th.now.Add(10 * time.Minute)
	if err := th.play(t); err != nil || th.validation("default") != "False CreateFleetAuthCheckFailed" {
		t.Errorf("denied for long: error %v, %s", err, th.validation("default"))
	}
}

// A class that loses what it found, and finds it again, has the verdict of before, not the condition of between.
func TestAVerdictOutlivesWhatWasMissingMeanwhile(t *testing.T) {
	th := newTheatre("good")
	if err := th.play(t); err != nil {
		t.Fatal(err)
	}
	all := th.Found["good"]
	gone := all
	gone.Images = nil
	th.Found["good"] = gone
	if err := th.play(t); err != nil || nodeclass.IsReady(th.Classes["good"]) {
		t.Errorf("without images: error %v, ready %v", err, th.Ready())
	}
	th.Found["good"] = all
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["good"]) || len(th.asked) != 0 {
		t.Errorf("with them again: error %v, ready %v, %d rehearsals", err, th.Ready(), len(th.asked))
	}
}

func TestARehearsalWithoutAnAnswerLeavesTheClassAsItIs(t *testing.T) {
	th := newTheatre("a")
	th.answers["a"] = errors.New("rehearse CreateFleet: connection refused")
	for range 2 {
		if err := th.play(t); err != nil || len(th.asked) != 4 || !strings.HasPrefix(th.validation("a"), "Unknown") {
			t.Errorf("error %v, %d rehearsals, %s", err, len(th.asked), th.validation("a"))
		}
	}
	delete(th.answers, "a")
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["a"]) {
		t.Errorf("error %v, ready %v", err, th.Ready())
	}
	th.answers["a"] = errors.New("rehearse CreateFleet: connection refused")
	th.now = th.now.Add(time.Hour)
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["a"]) || len(th.asked) != 1 {
		t.Errorf("an hour later: error %v, ready %v, %d rehearsals", err, th.Ready(), len(th.asked))
	}
}

// A new class is not left for the next refresh because EC2 was busy: it is looked at again after a while, alone, and
// its pool with it.
func TestARehearsalThatWasThrottledIsSoonRepeated(t *testing.T) {
	th := newTheatre("busy", "good")
	th.AddPool("p", "busy")
	throttled := &smithy.GenericAPIError{Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	th.answers["busy"] = fmt.Errorf("rehearse CreateFleet: %w", throttled)
	th.wakes = func() {
		if len(th.paused) == 2 {
			delete(th.answers, "busy")
		}
	}
	if err := th.play(t); err != nil || !nodeclass.IsReady(th.Classes["busy"]) || len(th.asked) != 4 {
		t.Errorf("error %v, ready %v, %d rehearsals, want one of good and three of busy", err, th.Ready(), len(th.asked))
	}
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 5 * time.Second}, th.paused); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if !th.Pools["p"].StatusConditions().IsTrue(v1.ConditionReady) {
		t.Error("the pool of the class is not ready")
	}
	if err := th.play(t); err != nil || len(th.asked) != 0 || len(th.paused) != 0 {
		t.Errorf("the next refresh: error %v, %d rehearsals, pauses %v", err, len(th.asked), th.paused)
	}
}

// What cannot become user data costs no call, and does not stop another class.
func TestMalformedUserDataIsSaidOnTheClass(t *testing.T) {
	th := newTheatre("a", "b", "c", "d", "e")
	family := "Bottlerocket"
	for name, text := range map[string]string{"a": "settings = 1", "b": "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\nno part", "c": strings.Repeat("#", 16_000)} {
		th.Classes[name].Spec.UserData = &text
	}
	th.Classes["a"].Spec.AMIFamily = &family
	th.Classes["d"].DeletionTimestamp = &metav1.Time{Time: th.now}
	if err := th.play(t); err != nil {
		t.Fatal(err)
	}
	got := th.validation("a") + ", " + th.validation("b") + ", " + th.validation("c") + ", " + th.validation("e")
	if got != "False UserDataMalformed, False UserDataMalformed, False UserDataSizeLimitExceeded, True ValidationSucceeded" || len(th.asked) != 1 {
		t.Errorf("%d rehearsals, conditions %s", len(th.asked), got)
	}
	k, _ := th.Classes["a"].StatusConditions().Get(awsv1.ConditionValidationSucceeded)
	if want := "user data: spec.userData: settings must be a TOML table: change spec.userData or spec.kubelet"; k.Message != want {
		t.Errorf("message %q, want %q", k.Message, want)
	}
}

func TestRealMemoryIsKeptOnTheClass(t *testing.T) {
	th := newTheatre("default")
	th.Claims = []cluster.Claim{{Name: "a", Class: "default", ProviderID: "aws:///z/i-1", ImageID: "ami-1", Annotations: map[string]string{"karpenter.k8s.aws/instance-profile-name": "p"},
		Labels: map[string]string{"node.kubernetes.io/instance-type": "m5.large"}, Capacity: resources.List{Memory: 7577 << 20},
		Conditions: []cluster.Condition{{Type: v1.ConditionRegistered, Status: "True"}}}}
	th.Nodes = []cluster.Node{{Name: "n", ProviderID: "aws:///z/i-1", Capacity: resources.List{Memory: 7700 << 20}}}
	for range 2 {
		if err := th.play(t); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(strings.Join(th.Did, ","), "mark class") {
		t.Errorf("what is known is written again: %v", th.Did)
	}
	c := th.Classes["default"]
	if got := nodeclass.DescribeClass(c).LearnedMemoryMiB["m5.large"]; got != 7700 || c.Annotations[v1.AnnotationDryRunResult] == "" || c.Annotations[awsv1.AnnotationHash] == "" {
		t.Errorf("memory %d, annotations %v", got, c.Annotations)
	}
}

func TestUnusedProfilesAreCollectedTwiceAnHour(t *testing.T) {
	th := newTheatre("default")
	th.Profiles = []nodeclass.Profile{{Name: "p", ClassUID: "uid"}, {Name: "old", ClassUID: "uid"}, {Name: "orphan", ClassUID: "gone"}}
	for minute, want := range map[int]int{0: 2, 4: 2, 5: 0, 29: 0, 30: 2, 34: 2, 35: 0, 59: 0} {
		th.now = time.Date(2026, 1, 1, 12, minute, 30, 0, time.UTC)
		if err := th.play(t); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(strings.Join(th.Did, ","), "delete profile"); n != want {
			t.Errorf("at minute %d %d profiles were deleted, want %d: %v", minute, n, want, th.Did)
		}
	}
}
