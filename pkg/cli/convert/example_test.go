package convert_test

import (
	"fmt"

	"joiner.sh/pkg/cli/convert"
	"joiner.sh/pkg/workload/manifest"
)

// A NodePool of Karpenter's v1beta1 becomes one of v1. Warnings say what has no equivalent, by file and field.
func ExampleConvertAll() {
	docs, err := manifest.ParseManifests("pool.yaml", []byte(`
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: batch}
spec:
  template:
    spec:
      nodeClassRef: {name: batch}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 720h}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := convert.ConvertAll(docs, convert.Options{Cluster: "prod"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range r.Objects {
		if o.Pool != nil {
			fmt.Println(o.Pool.Name, o.Pool.Spec.Disruption.ConsolidationPolicy, o.Pool.Spec.Template.Spec.ExpireAfter)
		}
	}
	for _, w := range r.Warnings {
		fmt.Println(w)
	}
	// Output:
	// batch WhenEmptyOrUnderutilized 720h0m0s
}
