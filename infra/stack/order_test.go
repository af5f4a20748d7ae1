package stack_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CloudFormation creates and deletes in parallel whatever no dependency orders, and deletes leaves first. So what the
// preflight and setup need while they answer must be in the closure of what their resource depends on: it is made before
// they are asked, and deleted only after they have cleaned up.
func TestWhatSetupNeedsOutlivesItsCleanup(t *testing.T) {
	roles := []string{"NodeRole", "NodeProfile", "NodeAccess", "WindowsNodeRole", "WindowsNodeProfile", "WindowsNodeAccess"}
	for name, c := range map[string]struct {
		more  map[string]any
		setup []string
	}{
		"outside of a VPC": {map[string]any{}, roles[:3]},
		"Windows":          {map[string]any{"windowsNodes": true}, roles},
		"in a VPC, into the cluster's security group": {map[string]any{"vpcID": vpc, "subnetIDs": []any{subnetA}, "clusterSecurityGroupID": cluster},
			append([]string{"IntoCluster", "FunctionsGroup"}, roles[:3]...)},
		"in a VPC with endpoints": {map[string]any{"vpcID": vpc, "subnetIDs": []any{subnetA}, "vpcEndpoints": true},
			[]string{"Ec2Endpoint", "SsmEndpoint", "EksEndpoint", "LambdaEndpoint", "EndpointsGroup", "FunctionsGroup", "NodeAccess"}},
	} {
		t.Run(name, func(t *testing.T) {
			context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
			maps.Copy(context, c.more)
			w := words(t, mustSynth(t, context))
			before := w.closure("SetupResource")
			for _, id := range c.setup {
				if !before[id] {
					t.Errorf("setup does not wait for %s, which CloudFormation then deletes before it is cleaned up", id)
				}
			}
			for id, r := range w.Resources {
				of := strings.TrimSuffix(plainID(id), "Alias")
				if r.Type == "AWS::Lambda::Alias" && w.closure(plainID(id))["SetupResource"] != (of != "Wake") {
					t.Errorf("%s waits for the cluster to have what the code needs: %t", of, of == "Wake")
				}
				if strings.HasSuffix(plainID(id), "SilentAlarm") && !w.closure(plainID(id))[strings.TrimSuffix(plainID(id), "SilentAlarm")+"Schedule"] {
					t.Errorf("%s rings before there is a schedule", id)
				}
			}
			if !w.closure("CatalogOldAlarm")["RefreshSchedule"] {
				t.Error("CatalogOldAlarm rings before there is a schedule")
			}
			// The preflight answers while there is nothing else, so that it can say what would stop the rest.
			alone := map[string]bool{"Preflight": true, "PreflightRole": true, "PreflightLogs": true}
			if diff := cmp.Diff(alone, w.closure("PreflightResource")); diff != "" {
				t.Errorf("what the preflight waits for (-want +got):\n%s", diff)
			}
			for _, id := range []string{"ProvisionRole", "Provision", "RefreshRole", "Refresh", "RefreshSchedule"} {
				if !w.closure(id)["SetupResource"] {
					t.Errorf("%s is still there when setup cleans up", id)
				}
			}
			for _, id := range slices.Concat(c.setup, []string{"SetupResource", "ProvisionAccess", "Provision"}) {
				if strings.HasSuffix(id, "Group") {
					continue // a security group refuses nothing
				}
				if !w.closure(id)["PreflightResource"] {
					t.Errorf("%s is made before the preflight has answered", id)
				}
			}
		})
	}
}

// closure is what exists as long as the resource does, by what it depends on and refers to, directly or not.
func (t template) closure(of string) map[string]bool {
	byName, seen := map[string]string{}, map[string]bool{}
	for id := range t.Resources {
		byName[plainID(id)] = id
	}
	for queue := []string{byName[of]}; len(queue) > 0; queue = queue[1:] {
		r := t.Resources[queue[0]]
		for _, next := range slices.Concat(r.DependsOn, references(r.Properties)) {
			if name := plainID(next); t.Resources[next].Type != "" && !seen[name] {
				seen[name] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}

// references are the resources that a value of a template refers to.
func references(v any) (ids []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			ids = append(ids, references(e)...)
		}
	case map[string]any:
		for name, argument := range v {
			switch a := argument.(type) {
			case string:
				if name == "Ref" {
					ids = append(ids, a)
				}
				if name == "Fn::GetAtt" {
					ids = append(ids, strings.Split(a, ".")[0])
				}
			case []any:
				if name == "Fn::GetAtt" {
					ids = append(ids, a[0].(string))
				}
			}
			ids = append(ids, references(argument)...)
		}
	}
	return ids
}
