package stack_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// escalations are the published ways by which who may do all of these becomes more than he is.
func escalations() [][]string {
	var out [][]string
	for _, alone := range []string{
		// other rights for somebody
		"iam:CreatePolicyVersion", "iam:SetDefaultPolicyVersion", "iam:AttachUserPolicy", "iam:AttachGroupPolicy", "iam:AttachRolePolicy",
		"iam:PutUserPolicy", "iam:PutGroupPolicy", "iam:PutRolePolicy", "iam:AddUserToGroup", "iam:UpdateAssumeRolePolicy",
		"iam:DeleteRolePermissionsBoundary", "iam:DeleteUserPermissionsBoundary", "iam:PutRolePermissionsBoundary", "iam:PutUserPermissionsBoundary",
		"iam:DetachRolePolicy", "iam:DeleteRolePolicy", "iam:CreateServiceLinkedRole",
		// credentials of somebody else
		"iam:CreateAccessKey", "iam:CreateLoginProfile", "iam:UpdateLoginProfile", "iam:CreateServiceSpecificCredential", "iam:ResetServiceSpecificCredential",
		"iam:CreateVirtualMFADevice", "iam:DeactivateMFADevice", "sts:AssumeRole", "sts:GetFederationToken", "iam:CreateOpenIDConnectProvider",
		"iam:UpdateSAMLProvider", "iam:CreateSAMLProvider",
		// code that runs as somebody else
		"lambda:UpdateFunctionCode", "lambda:UpdateFunctionConfiguration", "lambda:AddPermission", "lambda:CreateEventSourceMapping", "lambda:UpdateAlias",
		"lambda:PutFunctionEventInvokeConfig", "lambda:AddLayerVersionPermission", "lambda:InvokeFunction",
		"ec2:ModifyInstanceAttribute", "ec2:CreateLaunchTemplateVersion", "ec2:ModifyLaunchTemplate", "iam:AddRoleToInstanceProfile",
		"ssm:SendCommand", "ssm:StartSession", "ssm:CreateAssociation", "ec2-instance-connect:SendSSHPublicKey", "ec2:GetConsoleOutput", "ec2:CreateSnapshot",
		"cloudformation:UpdateStack", "cloudformation:SetStackPolicy", "cloudformation:ExecuteChangeSet", "glue:UpdateDevEndpoint", "glue:UpdateJob",
		"codebuild:UpdateProject", "sagemaker:CreatePresignedNotebookInstanceUrl", "ecs:ExecuteCommand", "events:PutRule", "scheduler:UpdateSchedule",
		// the cluster's administrator
		"eks:CreateAccessEntry", "eks:UpdateAccessEntry", "eks:AssociateAccessPolicy", "eks:UpdateClusterConfig", "eks:AssociateIdentityProviderConfig",
	} {
		out = append(out, []string{alone})
	}
	for _, with := range []string{
		"ec2:RunInstances", "ec2:RequestSpotInstances", "ec2:RequestSpotFleet", "ec2:CreateFleet", "ec2:AssociateIamInstanceProfile",
		"ec2:ReplaceIamInstanceProfileAssociation", "autoscaling:CreateLaunchConfiguration", "autoscaling:CreateAutoScalingGroup", "autoscaling:UpdateAutoScalingGroup",
		"lambda:CreateFunction", "cloudformation:CreateStack", "cloudformation:CreateChangeSet", "cloudformation:CreateStackSet", "glue:CreateDevEndpoint", "glue:CreateJob",
		"sagemaker:CreateNotebookInstance", "sagemaker:CreateTrainingJob", "sagemaker:CreateProcessingJob", "datapipeline:CreatePipeline", "codebuild:CreateProject",
		"ecs:RunTask", "ecs:RegisterTaskDefinition", "states:CreateStateMachine", "scheduler:CreateSchedule", "events:PutTargets", "ssm:StartAutomationExecution",
		"eks:CreatePodIdentityAssociation", "eks:CreateNodegroup", "batch:SubmitJob", "apprunner:CreateService", "mwaa:CreateEnvironment",
	} {
		out = append(out, []string{"iam:PassRole", with})
	}
	return out
}

// bounded are the ways that roles of the stack have, by function and way, with what keeps them short. security.md
// names them.
func bounded() map[string]string {
	const (
		nodes = "the roles of nodes alone, to EC2 alone: what a node may"
		wakes = "functions of the stack, by name and alias: the caller chooses no code"
	)
	out := map[string]string{
		"Setup iam:CreateServiceLinkedRole":    "the role of EC2 Spot, which is AWS's and serves EC2 alone",
		"Refresh iam:AddRoleToInstanceProfile": "profiles of the cluster's NodeClasses; the role must be one that it may pass",
	}
	for _, f := range []string{"Provision", "Refresh"} {
		for _, launch := range []string{"ec2:RunInstances", "ec2:CreateFleet"} {
			out[f+" iam:PassRole "+launch] = nodes
		}
	}
	for _, f := range []string{"Provision", "Lifecycle", "Disrupt", "SpotInterruption", "ReservationInterruption", "Rebalance", "ScheduledChange",
		"StateChange", "Wake", "Setup", "Schedules"} {
		out[f+" lambda:InvokeFunction"] = wakes
	}
	return out
}

// Known escalations that a role of the stack can go are those of bounded, in every form of the stack: none gives it more
// than a node has, and only setup is an administrator of the cluster.
func TestNoRoleBecomesMore(t *testing.T) {
	seen := map[string]bool{}
	for form, context := range nameForms(t) {
		w := words(t, mustSynth(t, context))
		may := map[string]map[string]bool{}
		for _, s := range statementsOf(w) {
			if s.effect != "Allow" {
				continue
			}
			if may[s.role] == nil {
				may[s.role] = map[string]bool{}
			}
			for _, action := range s.actions {
				if strings.ContainsAny(action, "*?") {
					t.Errorf("%s: %s of %s: a pattern may be anything", form, action, s.sid)
				}
				may[s.role][action] = true
				if action == "iam:PassRole" {
					checkPassing(t, form, s)
				}
			}
		}
		for _, role := range slices.Sorted(maps.Keys(may)) {
			for _, way := range escalations() {
				if slices.ContainsFunc(way, func(action string) bool { return !may[role][action] }) {
					continue
				}
				name := functionOfRole(role) + " " + strings.Join(way, " ")
				if seen[name] = true; bounded()[name] == "" {
					t.Errorf("%s: the role %s can become more: %v", form, role, way)
				}
			}
		}
		w.each("AWS::EKS::AccessEntry", func(id string, p map[string]any) {
			if p["AccessPolicies"] != nil && !strings.HasPrefix(id, "Setup") {
				t.Errorf("%s: %s has the access policies %v", form, id, p["AccessPolicies"])
			}
		})
	}
	for name := range bounded() {
		if !seen[name] {
			t.Errorf("no role can go %s: remove it from the list", name)
		}
	}
	checkPageOfEscalations(t)
}

// checkPageOfEscalations wants a row of security.md for each action by which a role becomes more, one for the
// administrator of the cluster, and no other.
func checkPageOfEscalations(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Roles that become more")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]string{"iam:PassRole": "| provision; refresh, with `dryRunValidation` | passes a role ", "iam:AddRoleToInstanceProfile": "| refresh | puts a role into an instance profile ",
		"iam:CreateServiceLinkedRole": "| setup | makes a service-linked role ", "lambda:InvokeFunction": "| schedules, and functions but refresh and preflight | invoke functions "}
	for name := range bounded() {
		action := strings.Fields(name)[1]
		if row := rows[action]; row == "" || !strings.Contains(table, row) {
			t.Errorf("security.md has no row %q about %s", row, name)
		}
	}
	if n := strings.Count(table, "\n| ") - 1; n != len(rows)+1 || !strings.Contains(table, "| setup | administers the cluster") {
		t.Errorf("security.md has %d roles that become more, want %d and the administrator", n, len(rows))
	}
}

// checkPassing wants a role to be passed to EC2 alone, and to be named.
func checkPassing(t *testing.T, form string, s policyStatement) {
	t.Helper()
	if !slices.Contains(s.keys, "iam:PassedToService") {
		t.Errorf("%s: %s passes a role to any service", form, s.role)
	}
	for _, r := range s.resources {
		if strings.HasSuffix(r, "role/*") || r == "*" {
			t.Errorf("%s: %s passes any role: %s", form, s.role, r)
		}
	}
}

// functionOfRole is the function whose role it is: the ids of roles begin with its name.
func functionOfRole(role string) string {
	name, _, _ := strings.Cut(role, "Role")
	return strings.TrimSuffix(name, "Service")
}
