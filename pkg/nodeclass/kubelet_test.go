package nodeclass_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
)

func TestFieldsOfTheKubeletAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"amiFamily: AL2023":                                                    "",
		"amiFamily: AL2023\nkubelet: {maxPods: 5}":                             "",
		"amiFamily: AL2023\nkubelet: {serializeImagePulls: false}":             "",
		"amiFamily: AL2023\nkubelet: {serialiseImagePulls: false}":             "InvalidKubeletConfiguration: spec.kubelet.serialiseImagePulls: the kubelet has no such field",
		"amiFamily: AL2023\nkubelet: {SerializeImagePulls: false}":             "InvalidKubeletConfiguration: spec.kubelet.SerializeImagePulls: the kubelet has no such field; did you mean serializeImagePulls?",
		"amiFamily: AL2023\nkubelet: {registerWithTaints: []}":                 "InvalidKubeletConfiguration: spec.kubelet.registerWithTaints cannot be set: write spec.template.spec.taints of the NodePool",
		"amiFamily: Custom\nkubelet: {podPidsLimit: 100}":                      "",
		"amiFamily: AL2023\nkubelet: {kubeReserved: {cpu: 100m, memory: 1Gi}}": "",
		"amiFamily: AL2023\nkubelet: {maxPods: 'min(110, enis)'}":              "KubeletExpressionInvalid: spec.kubelet.maxPods: expression \"min(110, enis)\": at character 10: undeclared reference to 'enis'",
		"amiFamily: AL2023\nkubelet: {maxPods: 'min(110, max_pods)'}":          "",
		"amiFamily: AL2\nkubelet: {maxPods: 'vcpus * 10'}":                     "",
		"amiFamily: Custom\nkubelet: {systemReserved: {cpu: vcpus}}":           "",
		"amiFamily: AL2023\nkubelet: {kubeReserved: {memory: 1.5Gb}}":          "KubeletExpressionInvalid: spec.kubelet.kubeReserved.memory: expression \"1.5Gb\": at character 4: Syntax error: extraneous input 'Gb' expecting <EOF>",
		"amiFamily: Bottlerocket\nkubelet: {maxPods: 5}":                       "",
		"amiFamily: Bottlerocket\nkubelet: {podPidsLimit: 100}":                "UnsupportedKubeletConfiguration: spec.kubelet has fields that nodes of Bottlerocket cannot be given: podPidsLimit; remove them, or take AL2023",
		"amiFamily: AL2\nkubelet: {podPidsLimit: 1, failSwapOn: true}":         "UnsupportedKubeletConfiguration: spec.kubelet has fields that nodes of AL2 cannot be given: failSwapOn, podPidsLimit; remove them, or take AL2023",
	} {
		c := &awsv1.EC2NodeClass{}
		if err := yaml.Unmarshal([]byte(text), &c.Spec); err != nil {
			t.Fatal(err)
		}
		reason, message := nodeclass.KubeletProblem(c)
		if got := reason + ": " + message; got != want && reason+message+want != "" {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		nodeclass.UpdateStatus(c, nodeclass.Resolved{ServiceCIDR: "10.0.0.0/16"}, time.Now())
		k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded)
		if (k.Reason == reason && k.Status == metav1.ConditionFalse) != (want != "") {
			t.Errorf("%s: the condition is %s %s: %s", text, k.Status, k.Reason, k.Message)
		}
	}
}
