package iam

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"joiner.sh/infra/local/iam"
	"joiner.sh/infra/local/lambdahost/assembly"
)

// needs is the permission matrix: for each statement of each function a deed that fails without it.
func needs() map[string]map[string]string {
	return map[string]map[string]string{
		"provision": {
			"ReadAuthority":         "reads whose certificates to believe",
			"LaunchFrom":            "launches",
			"LaunchFromOwnTemplate": "launches",
			"LaunchTagged":          "launches",
			"TagWhatIsLaunched":     "launches",
			"DescribeLaunched":      "adopts",
			"DescribeLevels":        "sees what is left",
			"StartOwnInstances":     "starts a stopped instance",
			"PassNodeRole":          "launches",
			"ReadCatalog":           "reads the catalog",
			"WakeFunctions":         "wakes lifecycle",
			"ReadZonalShifts":       "looks for shifted zones",
			"StorePasses":           "stores a pass",
			"ReadCheckpoint":        "begins with a checkpoint",
		},
		"disrupt": {
			"ReadCheckpoint":    "begins with a checkpoint",
			"ReadZonalShifts":   "looks for shifted zones",
			"ReadAuthority":     "reads whose certificates to believe",
			"DescribeLevels":    "sees what is left",
			"ReadCatalog":       "reads the catalog",
			"WakeFunctions":     "wakes provision",
			"DescribeInstances": "lists instances",
			"ReadAlarms":        "reads alarms",
			"FindImages":        "finds images",
			"StorePasses":       "stores a pass",
		},
		"lifecycle": {
			"ReadCheckpoint":           "begins with a checkpoint",
			"WriteCheckpoint":          "writes a checkpoint",
			"ReadAuthority":            "reads whose certificates to believe",
			"DescribeLaunched":         "lists instances",
			"DescribeHealth":           "asks for statuses",
			"ReadZonalShifts":          "looks for shifted zones",
			"TagOwnInstances":          "names an instance",
			"TerminateOwnInstances":    "terminates",
			"StopOwnInstances":         "stops",
			"DeleteOwnLaunchTemplates": "sweeps templates",
			"WakeFunctions":            "wakes provision",
		},
		"refresh": {
			"FindCluster":              "finds the cluster",
			"DescribeNetworkAndImages": "looks a class up",
			"DescribeOfferings":        "refreshes the catalog",
			"ReadImageParameters":      "looks a class up",
			"ReadPrices":               "refreshes the catalog",

			"DescribeReservedAndRunning": "reads what is committed",
			"DescribeSavingsPlans":       "reads what is committed",
			"DescribeTemplates":          "forgets a class",
			"DeleteOwnLaunchTemplates":   "forgets a class",
			"PassNodeRole":               "looks a class up",
			"ReadCatalog":                "learns there is none",
			"WriteCatalog":               "refreshes the catalog",
			"ReadInstanceProfiles":       "looks a class up",
			"ListInstanceProfiles":       "forgets a class",
			"CreateInstanceProfile":      "looks a class up",
			"TagInstanceProfile":         "looks a class up",
			"ChangeInstanceProfile":      "forgets a class",
			"LaunchFrom":                 "rehearses a launch",
			"LaunchFromOwnTemplate":      "rehearses a launch",
			"LaunchTagged":               "rehearses a launch",
			"TagWhatIsLaunched":          "rehearses a launch",
		},
		"spotinterruption": {
			"ReadAuthority": "reads whose certificates to believe",
			"WakeFunctions": "wakes provision",
		},
		"reservationinterruption": {
			"ReadAuthority": "reads whose certificates to believe",
			"WakeFunctions": "wakes provision",
		},
		"rebalance": {
			"ReadAuthority": "reads whose certificates to believe",
			"WakeFunctions": "wakes provision",
		},
		"scheduledchange": {
			"ReadAuthority": "reads whose certificates to believe",
			"WakeFunctions": "wakes provision",
		},
		"statechange": {
			"ReadAuthority": "reads whose certificates to believe",
			"WakeFunctions": "wakes provision",
		},
		"wake": {
			"WakeFunctions": "wakes provision",
		},
		"setup": {
			"FindCluster":    "looks how to get in",
			"CreateSpotRole": "makes the role of spot",
			"WakeFunctions":  "wakes lifecycle",
		},
		"preflight": {
			"FindCluster":     "looks how to get in",
			"ReadConcurrency": "looks what may be reserved",
			"ReadNodeRoles":   "looks for roles that are there",
			"CountNodes":      "counts nodes",
			"ReadMemory":      "looks what the functions have",
		},
	}
}

// platform are statements that Lambda itself uses in the name of the function's role, with what it does with them.
func platform() map[string]string {
	return map[string]string{
		"WriteOwnLog":          "Lambda writes the function's log",
		"SendTraces":           "Lambda records the invocation in X-Ray",
		"UseNetwork":           "Lambda puts the function into a VPC; infra/stack tests that nothing else differs there",
		"LeaveNetworkToLambda": "a Deny, which TestNetworkInterfacesAreLambdasAlone tries",
		"ReceiveOwnEvents":     "Lambda takes events from the function's queue; the host refuses to load a stack without it",
		"SendToOwnDeadLetters": "Lambda sends what the function gave up; the host refuses to load a stack without it",
	}
}

// unused are parts of statements that no call of the functions touches today, with the reason why they stay.
func unused() map[string]string {
	const same = "a rehearsal is on-demand and into no reservation; the statement is that of provision"
	return map[string]string{
		"refresh LaunchFrom resource arn:aws:ec2:us-west-2:*:capacity-reservation/*": same,
		"refresh LaunchFrom resource arn:aws:ec2:us-west-2:*:placement-group/*":      same,

		"refresh LaunchTagged resource arn:aws:ec2:us-west-2:111122223333:spot-instances-request/*":      same,
		"refresh TagWhatIsLaunched resource arn:aws:ec2:us-west-2:111122223333:spot-instances-request/*": same,
	}
}

func roleOf(a *assembly.Assembly, function string) *assembly.Role {
	for i := range a.Roles {
		if f := a.FindFunction("joiner-demo-" + function); f != nil && a.Roles[i].ARN == f.RoleARN {
			return &a.Roles[i]
		}
	}
	return nil
}

// statement is the part of a policy statement that the tests change.
type statement struct {
	Sid, Effect      string
	Action, Resource any
	Condition        any `json:",omitempty"`
}

func (s statement) list(field string) []any {
	v := map[string]any{"action": s.Action, "resource": s.Resource}[field]
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func statementsOf(t *testing.T, r *assembly.Role) []statement {
	t.Helper()
	var out []statement
	for _, p := range r.Policies {
		var d struct{ Statement []statement }
		if err := json.Unmarshal(p.Document, &d); err != nil {
			t.Fatal(err)
		}
		out = append(out, d.Statement...)
	}
	return out
}

// changed loads the stack with other statements in one function's role.
func changed(t *testing.T, function string, change func([]statement) []statement) *assembly.Assembly {
	t.Helper()
	return changedIn(t, load(t), function, change)
}

func changedIn(t *testing.T, a *assembly.Assembly, function string, change func([]statement) []statement) *assembly.Assembly {
	t.Helper()
	r := roleOf(a, function)
	doc, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": change(statementsOf(t, r))})
	if err != nil {
		t.Fatal(err)
	}
	r.Policies = []assembly.Policy{{Name: "changed", Document: doc}}
	return a
}

func TestEveryDeedIsAllowed(t *testing.T) {
	for function, list := range deeds() {
		for name, d := range list {
			t.Run(function+" "+name, func(t *testing.T) {
				t.Parallel()
				if err := d.run(t, start(t, load(t))); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestEveryStatementIsNeeded(t *testing.T) {
	for function, table := range needs() {
		for sid, name := range table {
			t.Run(function+" "+sid, func(t *testing.T) {
				t.Parallel()
				d, ok := deeds()[function][name]
				if !ok {
					t.Fatalf("%s has no deed %q", function, name)
				}
				stack := changed(t, function, func(all []statement) []statement {
					return slices.DeleteFunc(all, func(s statement) bool { return s.Sid == sid })
				})
				if err := d.run(t, start(t, stack)); !isDenied(err) {
					t.Errorf("without the statement, %q ends with: %v; want a refusal", name, err)
				}
			})
		}
	}
}

func TestTheMatrixIsComplete(t *testing.T) {
	a := load(t)
	for _, f := range a.Functions {
		function := strings.TrimPrefix(f.Name, "joiner-demo-")
		var have []string
		for _, s := range statementsOf(t, roleOf(a, function)) {
			if platform()[s.Sid] == "" {
				have = append(have, s.Sid)
			}
		}
		slices.Sort(have)
		want := slices.Sorted(maps.Keys(needs()[function]))
		if !slices.Equal(have, want) {
			t.Errorf("%s has the statements %v, the matrix has %v", function, have, want)
		}
	}
}

// withoutLambdas leaves out the statement that allows every function in a VPC what Lambda does there: it describes
// subnets too, and no function's own permissions may hide behind it.
func withoutLambdas(all []statement) []statement {
	return slices.DeleteFunc(all, func(s statement) bool { return s.Sid == "UseNetwork" })
}

// TestNoActionOrResourceIsIdle looks below the statements: each action and each resource of each of them is there for
// some deed.
func TestNoActionOrResourceIsIdle(t *testing.T) {
	left := map[string]bool{}
	for function, list := range deeds() {
		a, own := load(t), changed(t, function, withoutLambdas)
		var asked []iam.Request
		for _, d := range list {
			r := start(t, own)
			if err := d.run(t, r); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, r.allowed...)
		}
		for i, s := range statementsOf(t, roleOf(a, function)) {
			for _, field := range []string{"action", "resource"} {
				for n, part := range s.list(field) {
					if len(s.list(field)) == 1 || platform()[s.Sid] != "" {
						continue // the statement as a whole, which the matrix has
					}
					stack := changed(t, function, func(all []statement) []statement {
						rest := slices.Delete(slices.Clone(s.list(field)), n, n+1)
						if field == "action" {
							all[i].Action = rest
						} else {
							all[i].Resource = rest
						}
						return withoutLambdas(all)
					})
					policies, err := iam.Of(stack.Roles)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.ContainsFunc(asked, func(q iam.Request) bool { _, err := policies.Decide(q); return err != nil }) {
						left[fmt.Sprintf("%s %s %s %v", function, s.Sid, field, part)] = true
					}
				}
			}
		}
	}
	for part := range left {
		if unused()[part] == "" {
			t.Errorf("nothing needs %s: remove it from permissions.go or give the reason here", part)
		}
	}
	for part := range unused() {
		if !left[part] {
			t.Errorf("%s is needed, or is not there: remove it from this list", part)
		}
	}
}
