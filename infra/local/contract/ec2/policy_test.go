package ec2_test

import (
	"errors"
	"strings"
	"testing"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

// launchPolicy denies the launch of an instance unless its condition keys will do.
func launchPolicy(mayRun func(keys map[string][]string) bool) awsemulator.Options {
	return awsemulator.Options{Authorize: func(a awsemulator.Access) error {
		if a.Action == "ec2:RunInstances" && strings.HasSuffix(a.Resource, ":instance/*") && !mayRun(a.Keys) {
			return errors.New("with an explicit deny in a service control policy")
		}
		return nil
	}}
}

// A policy that demands IMDSv2 lets a class launch, and its dry run, which asks for it, and refuses both of another
// one.
func TestAPolicyThatDemandsIMDSv2(t *testing.T) {
	for tokens, may := range map[string]bool{"required": true, "optional": false} {
		t.Run(tokens, func(t *testing.T) {
			r := startWith(t, 1, launchPolicy(func(keys map[string][]string) bool {
				v := keys["ec2:MetadataHttpTokens"]
				return len(v) == 1 && v[0] == "required"
			}))
			o := r.order("on-demand", "m5.large")
			o.Templates[0].Metadata.HTTPTokens = tokens
			err := r.DryRun(t.Context(), o)
			if no, refused := errors.AsType[*launch.RefusedError](err); refused == may || refused && no.Code != "UnauthorizedOperation" {
				t.Errorf("dry run: %v", err)
			}
			_, _, err = r.LaunchInstances(t.Context(), o, token)
			if no, refused := errors.AsType[*fleet.LaunchError](err); refused == may || refused && no.Code != "UnauthorizedOperation" {
				t.Errorf("launch: %v", err)
			}
		})
	}
}

// A policy that denies one type refuses its offerings alone: the launch has another type, and marks those.
func TestAPolicyThatDeniesAType(t *testing.T) {
	r := startWith(t, 1, launchPolicy(func(keys map[string][]string) bool { return keys["ec2:InstanceType"][0] != "c5.large" }))
	got, marks, err := r.LaunchInstances(t.Context(), r.order("on-demand", "c5.large", "m5.large"), token)
	if err != nil || got.Type != "m5.large" || len(marks) != 2 {
		t.Errorf("launched %+v, marks %v, error %v", got, marks, err)
	}
	for _, m := range marks {
		if m.Type != "c5.large" || m.Why != "UnauthorizedOperation" {
			t.Errorf("mark %+v", m)
		}
	}
}
