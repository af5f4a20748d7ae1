package install_test

import (
	"fmt"

	"joiner.sh/pkg/install"
)

// A program that prepares clusters itself applies these objects in this order, before the functions run.
func ExampleObjects() {
	all, err := install.Objects()
	if err != nil {
		fmt.Println(err)
		return
	}
	told := map[string]bool{}
	for _, o := range all {
		if kind := o.GroupVersionKind(); !told[kind.Kind] {
			told[kind.Kind] = true
			fmt.Println(kind.Kind, kind.GroupVersion())
		}
	}
	// Output:
	// CustomResourceDefinition apiextensions.k8s.io/v1
	// Namespace v1
	// ClusterRole rbac.authorization.k8s.io/v1
	// ValidatingAdmissionPolicy admissionregistration.k8s.io/v1
	// ValidatingAdmissionPolicyBinding admissionregistration.k8s.io/v1
	// ClusterRoleBinding rbac.authorization.k8s.io/v1
	// Role rbac.authorization.k8s.io/v1
	// RoleBinding rbac.authorization.k8s.io/v1
	// PriorityLevelConfiguration flowcontrol.apiserver.k8s.io/v1
	// FlowSchema flowcontrol.apiserver.k8s.io/v1
}
