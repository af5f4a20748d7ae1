package workload_test

import (
	"fmt"

	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// The manifests of an application become a workload: a group for each Deployment, with a pod template and a count.
func ExampleCollectManifests() {
	docs, err := manifest.ParseManifests("shop.yaml", []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        resources: {requests: {cpu: 500m, memory: 1Gi}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	f, notes, err := workload.CollectManifests(docs, "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range f.Groups {
		fmt.Println(g.Count, "pods of", g.Name, "in", g.Namespace())
	}
	for _, p := range f.Pools {
		fmt.Println("NodePool", p.Name)
	}
	fmt.Println(len(notes), "notes")
	// Output:
	// 3 pods of web in shop
	// NodePool default
	// 0 notes
}

// A file that makes no sense is refused by field, with what to do.
func ExampleParseWorkload() {
	_, err := workload.ParseWorkload([]byte(`{"schema": 1, "name": "w", "groups": [{"name": "web", "count": -1}]}`))
	fmt.Println(err)
	// Output:
	// groups[0] (web).count is -1; allowed: 0 to 2000000
}
