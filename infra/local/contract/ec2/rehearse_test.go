package ec2_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/nodeclaim/launch"
)

func TestARehearsalLaunchesNothing(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	r.ForgetCalls()
	for range 2 {
		if err := r.DryRun(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"ec2:DescribeLaunchTemplates": 1, "ec2:CreateLaunchTemplate": 1, "ec2:CreateFleet": 2, "ec2:RunInstances": 2}
	if d := cmp.Diff(want, r.CallCounts()); d != "" || len(r.Cloud.DescribedInstances()) > 0 {
		t.Errorf("%d instances, calls (-want +got):\n%s", len(r.Cloud.DescribedInstances()), d)
	}
	if id := r.launch(t, o, token); id == "" {
		t.Error("the template of the rehearsal is not that of the launch")
	}
}

func TestWhatARehearsalIsRefused(t *testing.T) {
	for _, test := range []struct {
		action, code string
		status       int
		refused      string // the call, empty when there was no answer
	}{
		{"CreateLaunchTemplate", "UnauthorizedOperation", 403, "CreateLaunchTemplate"},
		{"CreateFleet", "UnauthorizedOperation", 403, "CreateFleet"},
		{"RunInstances", "UnauthorizedOperation", 403, "RunInstances"},
		{"RunInstances", "InvalidUserData.Malformed", 400, "RunInstances"},
		{"DescribeLaunchTemplates", "RequestLimitExceeded", 503, ""},
		{"CreateFleet", "RequestLimitExceeded", 503, ""},
		{"RunInstances", "InternalError", 500, ""},
	} {
		t.Run(test.action+" "+test.code, func(t *testing.T) {
			r := start(t, 1)
			r.AddFault(awsemulator.Fault{Service: "ec2", Action: test.action, Kind: awsemulator.FailBefore, Status: test.status, Code: test.code, Message: "why"})
			err := r.DryRun(t.Context(), r.order("on-demand", "m5.large"))
			no, refused := errors.AsType[*launch.RefusedError](err)
			if err == nil || refused != (test.refused != "") || refused && (*no != launch.RefusedError{Call: test.refused, Code: test.code, Message: "why"}) {
				t.Errorf("error is %v", err)
			}
			if n := len(r.Cloud.DescribedInstances()); n > 0 {
				t.Errorf("%d instances", n)
			}
		})
	}
}

// One subnet that will do is enough.
func TestARehearsalTriesEverySubnet(t *testing.T) {
	r := start(t, 1)
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "RunInstances", Kind: awsemulator.FailBefore, Status: 400, Code: "Unsupported", Times: 1})
	if err := r.DryRun(t.Context(), r.order("on-demand", "m5.large")); err != nil {
		t.Error(err)
	}
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "RunInstances", Kind: awsemulator.FailBefore, Status: 400, Code: "Unsupported", Message: "first", Times: 1})
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "RunInstances", Kind: awsemulator.FailBefore, Status: 400, Code: "Other", Message: "second"})
	err := r.DryRun(t.Context(), r.order("on-demand", "m5.large"))
	if err == nil || err.Error() != "RunInstances: Unsupported: first" {
		t.Errorf("error is %v", err)
	}
}

// A profile, an image or a group that EC2 does not know is found out before anybody waits for a node.
func TestARehearsalFindsOutWhatIsMissing(t *testing.T) {
	r := start(t, 1)
	for name, change := range map[string]func(w *launch.Template){
		"InvalidParameterValue": func(w *launch.Template) { w.InstanceProfile = "nobody's" },
		"InvalidAMIID.NotFound": func(w *launch.Template) { w.ImageID = "ami-0123" },
		"InvalidGroup.NotFound": func(w *launch.Template) { w.NetworkInterfaces[0].SecurityGroupIDs = []string{"sg-0123"} },
	} {
		o := r.order("on-demand", "m5.large")
		o.Templates[0].Name += name
		change(&o.Templates[0])
		for i := range o.Templates[0].Overrides {
			o.Templates[0].Overrides[i].ImageID = o.Templates[0].ImageID
		}
		no, ok := errors.AsType[*launch.RefusedError](r.DryRun(t.Context(), o))
		if !ok || no.Call != "RunInstances" || no.Code != name {
			t.Errorf("%s: %v", name, no)
		}
	}
}

// A sweep may take the template away between our look and the dry run: that tells nothing about the class, and the next
// rehearsal makes it anew.
func TestARehearsalWhoseTemplateIsGone(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	if err := r.DryRun(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	r.deleteTemplate(t, "joiner/demo/1")
	err := r.DryRun(t.Context(), o)
	if no, ok := errors.AsType[*launch.RefusedError](err); err == nil || ok {
		t.Errorf("without its template: %v, refused as %v", err, no)
	}
	if err := r.DryRun(t.Context(), o); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if n := r.CallCounts()["ec2:CreateLaunchTemplate"]; n != 2 {
		t.Errorf("%d templates made, want 2", n)
	}
}
