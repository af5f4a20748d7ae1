package stack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// published is AWS's service authorization data of the actions in use, as infra/deploytest/authorization.json has it.
type published struct {
	Types   map[string]string // service:type to the ARN of that type
	Actions map[string]struct {
		Level string
		Types map[string][]string // resource types, each with its condition keys
		Keys  []string            // condition keys that go with any resource
	}
}

func readPublished(t *testing.T) published {
	t.Helper()
	raw, err := os.ReadFile("../deploytest/authorization.json")
	if err != nil {
		t.Fatal(err)
	}
	var p published
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// deviations are pairs of action and resource, or action and key, that the data does not list and that stay, by the sid
// of their statement and what does not fit.
func deviations() map[string]string {
	const together = "one statement names all that its actions make or use, as Karpenter's policy does; IAM weighs each action with its own resources"
	out := map[string]string{
		"ReadZonalShifts arc-zonal-shift:GetManagedResource on *": "the data knows load balancers alone as resources; a condition names the cluster, as in Karpenter's policy",
		"ReadAlarms cloudwatch:DescribeAlarms on *":               "CloudWatch lists composite alarms only to who may describe all, as its API reference says",

		"UseNetwork ec2:CreateNetworkInterface on *":     "Lambda's guide asks for it; the Deny beside it keeps function code away",
		"UseNetwork ec2:DeleteNetworkInterface on *":     "as above",
		"UseNetwork ec2:AssignPrivateIpAddresses on *":   "as above",
		"UseNetwork ec2:UnassignPrivateIpAddresses on *": "as above",

		"DescribeSavingsPlans savingsplans:DescribeSavingsPlans on *":     "a read of all plans of the account",
		"DescribeSavingsPlans savingsplans:DescribeSavingsPlanRates on *": "as above",
	}
	for _, action := range []string{"CreateNetworkInterface", "DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"} {
		out["LeaveNetworkToLambda ec2:"+action+" on *"] = "a Deny is to reach everything"
		out["LeaveNetworkToLambda ec2:"+action+" if lambda:SourceFunctionArn"] = "Lambda's credentials carry the key into calls of every service; Lambda's guide documents it"
	}
	for action, kinds := range map[string][]string{
		"LaunchFrom ec2:CreateFleet":            {"capacity-reservation", "security-group", "snapshot"},
		"LaunchTagged ec2:CreateFleet":          {"network-interface", "spot-instances-request"},
		"LaunchTagged ec2:CreateLaunchTemplate": {"fleet", "instance", "network-interface", "spot-instances-request", "volume"},
		"LaunchTagged ec2:RunInstances":         {"fleet", "spot-instances-request"},
	} {
		for _, kind := range kinds {
			out[action+" on "+kind] = together
		}
	}
	return out
}

// unconstrained are the writes that reach every resource under no condition.
func unconstrained() map[string]string {
	return map[string]string{
		"SendTraces": "X-Ray knows no resources", "UseNetwork": "the Deny beside it keeps function code away",
	}
}

// policyStatement is one statement of a template, in words.
type policyStatement struct {
	role, sid, effect        string
	actions, resources, keys []string
}

func statementsOf(w template) []policyStatement {
	var out []policyStatement
	w.each("AWS::IAM::Role", func(id string, p map[string]any) {
		policies, _ := p["Policies"].([]any)
		for _, policy := range policies {
			for _, raw := range policy.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"].([]any) {
				s := raw.(map[string]any)
				st := policyStatement{role: id, sid: s["Sid"].(string), effect: s["Effect"].(string)}
				for _, a := range list(s["Action"]) {
					st.actions = append(st.actions, a.(string))
				}
				for _, r := range list(s["Resource"]) {
					st.resources = append(st.resources, text(r))
				}
				when, _ := s["Condition"].(map[string]any)
				for _, tests := range when {
					for key := range tests.(map[string]any) {
						st.keys = append(st.keys, key)
					}
				}
				out = append(out, st)
			}
		}
	})
	return out
}

// TestStatementsAreAsIAMWeighsThem holds every statement of the template in each of its forms to the data that AWS
// publishes: the action exists, knows a resource of that type, and is asked with that condition key.
func TestStatementsAreAsIAMWeighsThem(t *testing.T) {
	data := readPublished(t)
	seen, used := map[string]bool{}, map[string]bool{}
	for form, context := range nameForms(t) {
		w := words(t, mustSynth(t, context))
		for _, s := range statementsOf(w) {
			for _, action := range s.actions {
				known, ok := data.Actions[action]
				if !ok {
					t.Errorf("%s: %s of %s is not in authorization.json: is it spelt so? make authorization", form, action, s.sid)
					continue
				}
				used[action] = true
				for _, problem := range data.problems(s, action) {
					seen[problem] = true
					if deviations()[problem] == "" {
						t.Errorf("%s: %s: the data does not list %s", form, s.role, problem)
					}
				}
				if s.effect == "Allow" && slices.Contains([]string{"Write", "Permissions management", "Tagging"}, known.Level) &&
					slices.Contains(s.resources, "*") && len(s.keys) == 0 && unconstrained()[s.sid] == "" {
					t.Errorf("%s: %s may %s anything: %s", form, s.role, action, s.sid)
				}
			}
		}
	}
	for problem := range deviations() {
		if !seen[problem] {
			t.Errorf("%s is found nowhere: remove it from the deviations", problem)
		}
	}
	for action := range data.Actions {
		if !used[action] {
			t.Errorf("%s is in authorization.json and in no policy: make authorization", action)
		}
	}
}

// problems are what does not fit in a statement as far as one of its actions is concerned.
func (p published) problems(s policyStatement, action string) (out []string) {
	known := p.Actions[action]
	service, _, _ := strings.Cut(action, ":")
	keys := slices.Clone(known.Keys)
	for _, resource := range s.resources {
		fits := resource == "*" && len(known.Types) == 0
		for name, more := range known.Types {
			if resource == "*" || sameType(p.Types[service+":"+name], resource) {
				keys = append(keys, more...)
				fits = fits || resource != "*"
			}
		}
		if !fits {
			out = append(out, fmt.Sprintf("%s %s on %s", s.sid, action, typeOf(resource)))
		}
	}
	for _, key := range s.keys {
		generic := regexp.MustCompile(`^(aws:(Request|Resource)Tag/|[a-z0-9-]+:ResourceTag/).*`).ReplaceAllString(key, "${1}$${TagKey}")
		global := slices.Contains([]string{"aws:RequestedRegion"}, key)
		if !global && !slices.Contains(keys, generic) {
			out = append(out, fmt.Sprintf("%s %s if %s", s.sid, action, key))
		}
	}
	return out
}

// sameType tells whether an ARN of a template is one of a published type: the same service, and a resource that begins
// alike up to what the type leaves open.
func sameType(published, resource string) bool {
	want, have := strings.SplitN(published, ":", 6), strings.SplitN(unfold(resource), ":", 6)
	if len(want) != 6 || len(have) != 6 || want[2] != have[2] {
		return false
	}
	fixed := regexp.MustCompile(`\$\{[^}]+\}`).Split(want[5], 2)[0]
	return strings.HasPrefix(have[5], fixed)
}

// unfold writes out the ARN that an attribute of another resource stands for, which is all that matters here.
func unfold(resource string) string {
	for suffix, arn := range map[string]string{
		"Logs.Arn}": "arn:aws:logs:r:a:log-group:x:log-stream:y", "DeadLetters.Arn}": "arn:aws:sqs:r:a:x", "Events.Arn}": "arn:aws:sqs:r:a:x", "Role.Arn}": "arn:aws:iam::a:role/x",
	} {
		if strings.HasSuffix(resource, suffix) {
			return arn
		}
	}
	if rest, ok := strings.CutPrefix(resource, "${Catalog.Arn}"); ok {
		return "arn:aws:s3:::x" + rest
	}
	return strings.NewReplacer("${AWS::Partition}", "aws", "${AWS::Region}", "r", "${AWS::AccountId}", "a").Replace(resource)
}

// typeOf names a resource in a deviation: * or the type of EC2.
func typeOf(resource string) string {
	parts := strings.SplitN(unfold(resource), ":", 6)
	if len(parts) < 6 {
		return resource
	}
	kind, _, _ := strings.Cut(parts[5], "/")
	return kind
}

// TestNoticesChangeNothingInEC2: what handles notices may only read in EC2, and Lambda's own right to network
// interfaces, which comes with the role, is denied to its code.
func TestNoticesChangeNothingInEC2(t *testing.T) {
	data := readPublished(t)
	for form, context := range nameForms(t) {
		all := statementsOf(words(t, mustSynth(t, context)))
		var denied []string
		for _, s := range all {
			if s.effect == "Deny" && slices.Contains(s.resources, "*") {
				for _, a := range s.actions {
					denied = append(denied, s.role+" "+a)
				}
			}
		}
		n := 0
		for _, s := range all {
			role := strings.TrimSuffix(s.role, "Role")
			if !slices.Contains([]string{"SpotInterruption", "ReservationInterruption", "StateChange", "Rebalance", "ScheduledChange"}, role) {
				continue
			}
			n++
			for _, a := range s.actions {
				level := data.Actions[a].Level
				if s.effect == "Allow" && level != "Read" && level != "List" && regexp.MustCompile("^(ec2|iam|eks):").MatchString(a) &&
					!slices.Contains(denied, s.role+" "+a) {
					t.Errorf("%s: the code of %s may %s (%s)", form, role, a, s.sid)
				}
			}
		}
		if n < 10 {
			t.Errorf("%s: only %d statements were looked at", form, n)
		}
	}
}
