package stack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
)

// nameForms are the shapes that settings give the template, which infra/deploytest lints too: as it comes, outside of a VPC
// with everything on, and in a VPC.
func nameForms(t *testing.T) map[string]map[string]any {
	t.Helper()
	raw, err := os.ReadFile("../deploytest/forms.json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	for _, context := range out {
		context["clusterName"], context["distFolder"] = "demo", placeholders(t)
	}
	return out
}

// TestTheLongestNameFits holds the names and texts that contain the cluster's name to what AWS takes.
func TestTheLongestNameFits(t *testing.T) {
	limits := map[string]map[string]int{
		"AWS::Lambda::Function":          {"FunctionName": 64, "Description": 256},
		"AWS::IAM::Role":                 {"RoleName": 64, "Description": 1000},
		"AWS::IAM::InstanceProfile":      {"InstanceProfileName": 128},
		"AWS::CloudWatch::Alarm":         {"AlarmName": 255, "AlarmDescription": 1024},
		"AWS::CloudWatch::Dashboard":     {"DashboardName": 255},
		"AWS::Logs::LogGroup":            {"LogGroupName": 512},
		"AWS::Logs::QueryDefinition":     {"Name": 255},
		"AWS::SNS::Topic":                {"DisplayName": 100},
		"AWS::Events::Rule":              {"Name": 64, "Description": 512},
		"AWS::Scheduler::Schedule":       {"Name": 64, "GroupName": 64, "Description": 512},
		"AWS::Scheduler::ScheduleGroup":  {"Name": 64},
		"AWS::EC2::SecurityGroup":        {"GroupDescription": 255},
		"AWS::SecretsManager::Secret":    {"Description": 2048},
		"AWS::EKS::AccessEntry":          {"ClusterName": 100},
		"AWS::Lambda::EventInvokeConfig": {"FunctionName": 140},
	}
	for name, cluster := range map[string]string{"100 characters": strings.Repeat("a", 100), "a leading digit": "1" + strings.Repeat("_", 99)} {
		for form, context := range nameForms(t) {
			t.Run(name+" "+form, func(t *testing.T) {
				context["clusterName"] = cluster
				s, err := synth(t, context)
				if err != nil {
					t.Fatal(err)
				}
				if got := *s.StackName(); len(got) > 128 || strings.Contains(got, "_") {
					t.Errorf("stack name %s of %d characters", got, len(got))
				}
				w := words(t, assertions.Template_FromStack(s, nil))
				for kind, fields := range limits {
					w.each(kind, func(id string, p map[string]any) {
						for field, limit := range fields {
							if value, ok := p[field].(string); ok && len(value) > limit {
								t.Errorf("%s of %s has %d characters, %d fit: %s", field, id, len(value), limit, value)
							}
						}
					})
				}
				if n := len(fmt.Sprint(w.Resources)); n < 10000 {
					t.Errorf("only %d characters of template were looked at", n)
				}
			})
		}
	}
}
