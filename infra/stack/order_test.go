package stack_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// CloudFormation creates and deletes in parallel whatever no dependency orders, and deletes leaves first. So what the
// preflight and setup need while they answer must be in the closure of what their resource depends on: it is made before
// they are asked, and deleted only after they have cleaned up.
func TestWhatSetupNeedsOutlivesItsCleanup(t *testing.T) {
	roles := []string{"NodeRole", "NodeProfile", "NodeAccess", "WindowsNodeRole", "WindowsNodeProfile", "WindowsNodeAccess"}
	for name, c := range map[string]struct {
		more             map[string]any
		setup, preflight []string
	}{
		"outside of a VPC": {map[string]any{}, roles[:3], nil},
		"Windows":          {map[string]any{"windowsNodes": true}, roles, nil},
		"in a VPC, into the cluster's security group": {map[string]any{"vpcID": vpc, "subnetIDs": []any{subnetA}, "clusterSecurityGroupID": cluster},
			append([]string{"IntoCluster", "FunctionsGroup"}, roles[:3]...), []string{"IntoCluster", "FunctionsGroup"}},
		"in a VPC with endpoints": {map[string]any{"vpcID": vpc, "subnetIDs": []any{subnetA}, "vpcEndpoints": true},
			[]string{"Ec2Endpoint", "SsmEndpoint", "EksEndpoint", "LambdaEndpoint", "EndpointsGroup", "FunctionsGroup", "NodeAccess"},
			[]string{"Ec2Endpoint", "SsmEndpoint", "EksEndpoint", "LambdaEndpoint", "EndpointsGroup", "FunctionsGroup"}},
	} {
		t.Run(name, func(t *testing.T) {
			context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
			maps.Copy(context, c.more)
			w := words(t, mustSynth(t, context))
			for resource, needs := range map[string][]string{"SetupResource": c.setup, "PreflightResource": c.preflight} {
				before := w.closure(resource)
				for _, id := range needs {
					if !before[id] {
						t.Errorf("%s does not wait for %s, which CloudFormation then deletes before %[1]s is cleaned up", resource, id)
					}
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
