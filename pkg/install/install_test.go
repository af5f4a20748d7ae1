package install

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestObjectsAndTheirOrder(t *testing.T) {
	all, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range all {
		got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	want := []string{
		"CustomResourceDefinition /noderollouts.joiner.sh",
		"CustomResourceDefinition /ec2nodeclasses.karpenter.k8s.aws",
		"CustomResourceDefinition /nodeclaims.karpenter.sh",
		"CustomResourceDefinition /nodeoverlays.karpenter.sh",
		"CustomResourceDefinition /nodepools.karpenter.sh",
		"Namespace /joiner-system",
		"ClusterRole /joiner-admin",
		"ValidatingAdmissionPolicy /joiner-nodes",
		"ValidatingAdmissionPolicyBinding /joiner-nodes",
		"ClusterRole /joiner-disrupt", "ClusterRoleBinding /joiner-disrupt",
		"Role joiner-system/joiner-disrupt", "RoleBinding joiner-system/joiner-disrupt",
		"ValidatingAdmissionPolicy /joiner-kubelet",
		"ValidatingAdmissionPolicyBinding /joiner-kubelet",
		"ClusterRole /joiner-lifecycle",
		"ClusterRoleBinding /joiner-lifecycle",
		"Role joiner-system/joiner-lifecycle",
		"RoleBinding joiner-system/joiner-lifecycle",
		"ValidatingAdmissionPolicy /joiner-provision",
		"ValidatingAdmissionPolicyBinding /joiner-provision",
		"ClusterRole /joiner-provision",
		"ClusterRoleBinding /joiner-provision",
		"Role joiner-system/joiner-provision",
		"RoleBinding joiner-system/joiner-provision",
		"Role kube-system/joiner-provision",
		"RoleBinding kube-system/joiner-provision",
		"ClusterRole /joiner-rebalance",
		"ClusterRoleBinding /joiner-rebalance",
		"Role joiner-system/joiner-rebalance",
		"RoleBinding joiner-system/joiner-rebalance",
		"ClusterRole /joiner-refresh",
		"ClusterRoleBinding /joiner-refresh",
		"Role joiner-system/joiner-refresh",
		"RoleBinding joiner-system/joiner-refresh",
		"Role kube-system/joiner-refresh",
		"RoleBinding kube-system/joiner-refresh",
		"ClusterRole /joiner-reservationinterruption",
		"ClusterRoleBinding /joiner-reservationinterruption",
		"Role joiner-system/joiner-reservationinterruption",
		"RoleBinding joiner-system/joiner-reservationinterruption",
		"ClusterRole /joiner-scheduledchange",
		"ClusterRoleBinding /joiner-scheduledchange",
		"ClusterRole /joiner-spotinterruption",
		"ClusterRoleBinding /joiner-spotinterruption",
		"Role joiner-system/joiner-spotinterruption",
		"RoleBinding joiner-system/joiner-spotinterruption",
		"ClusterRole /joiner-statechange",
		"ClusterRoleBinding /joiner-statechange",
		"PriorityLevelConfiguration /joiner-urgent",
		"PriorityLevelConfiguration /joiner-lists",
		"FlowSchema /joiner-lists",
		"FlowSchema /joiner-urgent",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A field that a Kubernetes type does not have would be dropped in silence by the API server.
func TestNoObjectHasAnUnknownField(t *testing.T) {
	all, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	borrowed, err := Borrowed()
	if err != nil || len(borrowed) != 1 {
		t.Fatalf("%d borrowed objects: %v", len(borrowed), err)
	}
	all = append(all, borrowed...)
	for _, o := range all {
		var into any
		switch o.GetKind() {
		case "CustomResourceDefinition":
			into = &apiextensions.CustomResourceDefinition{}
		case "ClusterRole":
			into = &rbacv1.ClusterRole{}
		case "ClusterRoleBinding":
			into = &rbacv1.ClusterRoleBinding{}
		case "Role":
			into = &rbacv1.Role{}
		case "RoleBinding":
			into = &rbacv1.RoleBinding{}
		case "ValidatingAdmissionPolicy":
			into = &admissionv1.ValidatingAdmissionPolicy{}
		case "FlowSchema":
			into = &flowcontrolv1.FlowSchema{}
		case "PriorityLevelConfiguration":
			into = &flowcontrolv1.PriorityLevelConfiguration{}
		case "ValidatingAdmissionPolicyBinding":
			into = &admissionv1.ValidatingAdmissionPolicyBinding{}
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// A binding gives the role of its own name to the group of its own name, and to nobody else.
func TestEveryBindingIsForItsOwnGroup(t *testing.T) {
	rbac, err := RBAC()
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	for _, o := range rbac {
		role, found, err := unstructured.NestedString(o.Object, "roleRef", "name")
		if err != nil || !found {
			continue
		}
		subjects, _, err := unstructured.NestedSlice(o.Object, "subjects")
		if err != nil {
			t.Fatal(err)
		}
		want := []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": o.GetName()}}
		if diff := cmp.Diff(want, subjects); diff != "" || role != o.GetName() {
			t.Errorf("%s %s gives the role %s (-want +got subjects):\n%s", o.GetKind(), o.GetName(), role, diff)
		}
		bound[o.GetName()] = true
	}
	want := map[string]bool{GroupProvision: true, GroupLifecycle: true, GroupDisrupt: true, GroupRefresh: true, GroupSpotInterruption: true,
		GroupReservationInterruption: true, GroupRebalance: true, GroupScheduledChange: true, GroupStateChange: true}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("groups with rights (-want +got):\n%s", diff)
	}
}

// Without it a function could not tell that it must not act.
func TestEveryGroupMaySeeWhoLeads(t *testing.T) {
	rbac, err := RBAC()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"},
		"resourceNames": []any{"karpenter-leader-election"}, "verbs": []any{"get"}}
	for _, o := range rbac {
		if o.GetKind() != "ClusterRole" || o.GetName() == "joiner-admin" {
			continue
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(rules, func(r any) bool { return cmp.Equal(r, any(want)) }) {
			t.Errorf("ClusterRole %s lacks the rule %v", o.GetName(), want)
		}
	}
}

func TestNobodyReadsSecrets(t *testing.T) {
	rbac, err := RBAC()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rbac {
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			for _, list := range []string{"apiGroups", "resources", "verbs"} {
				names, _, err := unstructured.NestedStringSlice(rule.(map[string]any), list)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range names {
					if n == "*" || n == "secrets" || n == "escalate" || n == "bind" || n == "impersonate" {
						t.Errorf("%s %s has %q among its %s", o.GetKind(), o.GetName(), n, list)
					}
				}
			}
		}
	}
}

// Nobody may write CapacityBuffers by what Joiner installs, not through the roles `admin`, `edit` and `view` either: they
// spend money past the quotas of a namespace, so whoever may is the cluster's choice. Joiner itself writes their status.
func TestNobodyIsGivenCapacityBuffers(t *testing.T) {
	all, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, o := range all {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		aggregated := slices.ContainsFunc(slices.Collect(maps.Keys(role.Labels)), func(l string) bool {
			return strings.HasPrefix(l, "rbac.authorization.k8s.io/aggregate-to-")
		})
		for _, r := range role.Rules {
			names := func(list []string, name string) bool {
				return slices.Contains(list, name) || slices.Contains(list, "*")
			}
			if !names(r.APIGroups, "autoscaling.x-k8s.io") || !names(r.Resources, "capacitybuffers") {
				continue
			}
			reads++
			for _, verb := range r.Verbs {
				if aggregated || !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s lets somebody %s CapacityBuffers", role.Name, verb)
				}
			}
		}
	}
	if reads == 0 {
		t.Error("no role reads CapacityBuffers: the test looks for the wrong name")
	}
}

// TestEveryGroupHasItsPriority, by its exact name: no pattern lets somebody in who calls himself joiner-something.
func TestEveryGroupHasItsPriority(t *testing.T) {
	all, err := Priority()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, o := range all {
		if o.GetKind() != "FlowSchema" {
			continue
		}
		var schema flowcontrolv1.FlowSchema
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &schema); err != nil {
			t.Fatal(err)
		}
		for _, rule := range schema.Spec.Rules {
			for _, s := range rule.Subjects {
				if s.Group == nil {
					t.Fatalf("%s: subject %+v", schema.Name, s)
				}
				got[schema.Name+" to "+schema.Spec.PriorityLevelConfiguration.Name] = append(got[schema.Name+" to "+schema.Spec.PriorityLevelConfiguration.Name], s.Group.Name)
			}
		}
	}
	scheduled := []string{GroupProvision, GroupLifecycle, GroupDisrupt, GroupRefresh}
	want := map[string][]string{"joiner-lists to joiner-lists": scheduled, "joiner-urgent to joiner-urgent": append(slices.Clone(scheduled), GroupSpotInterruption,
		GroupReservationInterruption, GroupRebalance, GroupScheduledChange, GroupStateChange)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
