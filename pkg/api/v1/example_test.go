package v1_test

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "joiner.sh/pkg/api/v1"
)

// The types are those of a typed client. The hash is the annotation karpenter.sh/nodepool-hash: nodes drift when it
// changes, and a weight changes no node.
func ExampleNodePool_Hash() {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	var pool v1.NodePool
	if err := json.Unmarshal([]byte(`{"metadata": {"name": "general"}, "spec": {"template": {"spec": {
		"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
		"expireAfter": "720h"}}}}`),
		&pool); err != nil {
		fmt.Println(err)
		return
	}
	before := pool.Hash()
	pool.Spec.Weight = new(int32)
	fmt.Println("the same after another weight:", pool.Hash() == before)
	pool.Spec.Template.Labels = map[string]string{"team": "shop"}
	fmt.Println("the same after another label:", pool.Hash() == before)
	// Output:
	// the same after another weight: true
	// the same after another label: false
}
