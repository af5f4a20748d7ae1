package cloudtest

import "fmt"

// CapacityBuffer is the text of a CapacityBuffer of the strategy for one pod of half a CPU, with its PodTemplate.
func CapacityBuffer(name, strategy string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: PodTemplate
metadata: {name: spare, namespace: default}
template:
  spec:
    containers: [{name: a, image: pause, resources: {requests: {cpu: 500m, memory: 256Mi}}}]
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: %s, namespace: default}
spec: {provisioningStrategy: %s, podTemplateRef: {name: spare}, replicas: 1}
`, name, strategy)
}
