package stack_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/providers/invoke"
)

// busRules is how many rules an event bus has at most, in nearly all regions.
const busRules = 300

// TestSchedulesAreNoRules: schedules take none of the rules of the account's event bus, so that they last for more than
// 30 clusters; each tick tells the function that the clock invoked it, by a role that may invoke this function.
func TestSchedulesAreNoRules(t *testing.T) {
	for name, context := range nameForms(t) {
		t.Run(name, func(t *testing.T) {
			tmpl := words(t, mustSynth(t, context))
			rules, ticks := 0, map[string]string{}
			tmpl.each("AWS::Events::Rule", func(id string, p map[string]any) {
				if rules++; p["ScheduleExpression"] != nil {
					t.Errorf("rule %s has a schedule", id)
				}
			})
			if busRules/rules <= 30 {
				t.Errorf("%d rules for a cluster: an event bus has room for %d clusters", rules, busRules/rules)
			}
			may := tmpl.permissions("Schedules")
			tmpl.each("AWS::Scheduler::Schedule", func(id string, p map[string]any) {
				target := p["Target"].(map[string]any)
				input, _ := target["Input"].(string)
				if got := invoke.Reason([]byte(input)); got != invoke.Clock {
					t.Errorf("%s sends %s: the function takes it for %q", id, input, got)
				}
				alias := ":live"
				if strings.HasSuffix(p["Name"].(string), "-setup") { // of which the code counts that is deployed last
					alias = ""
				}
				if text(target["RoleArn"]) != "${SchedulesRole.Arn}" || !strings.Contains(may, ":"+p["Name"].(string)+alias+"\n") {
					t.Errorf("%s invokes as %s, which may\n%s", id, text(target["RoleArn"]), may)
				}
				// An update that made a rule into a schedule in place would be refused: it is another resource.
				if strings.HasSuffix(id, "Tick") {
					t.Errorf("%s has the id of the rule that it replaces", id)
				}
				ticks[p["Name"].(string)] = p["ScheduleExpression"].(string)
			})
			for id, r := range tmpl.Resources {
				if r.Type == "AWS::Scheduler::Schedule" && !slices.ContainsFunc(r.DependsOn, func(on string) bool { return strings.HasPrefix(on, "Schedules") }) {
					t.Errorf("%s may be made before its group: it depends on %v", id, r.DependsOn)
				}
			}
			want := map[string]string{"provision": "rate(1 minute)", "lifecycle": "rate(1 minute)", "disrupt": "rate(1 minute)", "refresh": "rate(5 minutes)"}
			inVPC, handled := false, map[string]bool{}
			tmpl.each("AWS::Lambda::Function", func(_ string, p map[string]any) {
				_, name, _ := strings.Cut(p["FunctionName"].(string), "joiner-demo-")
				inVPC, handled[name] = inVPC || p["VpcConfig"] != nil, true
			})
			// Lambda takes the network of a function in a VPC away that nobody invokes for 14 days, and then the first
			// notice, or CloudFormation, finds it so.
			for _, name := range []string{"spotinterruption", "reservationinterruption", "rebalance", "scheduledchange", "statechange", "setup"} {
				if inVPC && handled[name] {
					want[name] = "rate(1 day)"
				}
			}
			got := map[string]string{}
			for name, rate := range ticks {
				_, name, _ = strings.Cut(name, "joiner-demo-")
				got[name] = rate
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("schedules (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyItsSchedulesUseTheRole: the scheduler of another account, or another group of schedules, cannot use the role.
func TestOnlyItsSchedulesUseTheRole(t *testing.T) {
	tmpl, found := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)})), false
	tmpl.each("AWS::IAM::Role", func(id string, p map[string]any) {
		if id != "SchedulesRole" {
			return
		}
		found = true
		want := "StringEquals={aws:SourceAccount=${AWS::AccountId}, aws:SourceArn=arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule-group/joiner-demo}"
		if got := text(p["AssumeRolePolicyDocument"]); !strings.Contains(got, want) || !strings.Contains(got, "Service=scheduler.amazonaws.com") {
			t.Errorf("trust: %s", got)
		}
	})
	if !found {
		t.Error("there is no role of the schedules")
	}
}
