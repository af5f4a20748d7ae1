package settings

import "fmt"

// podsOfNode is the number of pods of a node where the sizes below were measured.
const podsOfNode = 30

const leastFunctionMemory, mostFunctionMemory = 512, 10240

// RecommendFunctionMemory is the functionMemory, in MiB, that suits a cluster of so many nodes and pods: one with which
// a burst, or many interruptions at once, leaves passes time, and memory in use stays below seven tenths. Beyond 5,000
// nodes it grows in proportion, up to what Lambda has.
func RecommendFunctionMemory(nodes, pods int) int {
	nodes = max(nodes, pods/podsOfNode)
	switch {
	case nodes <= 500:
		return leastFunctionMemory
	case nodes <= 2000:
		return 1024
	case nodes <= 5000:
		return 3008
	}
	return min(mostFunctionMemory, 3008*nodes/5000)
}

// memoryInUse is the part of a function's memory from which on Go collects garbage however little memory has grown.
const memoryInUse = 0.65

// FunctionMemoryLimit is the GOMEMLIMIT of a function that has so many MiB.
func FunctionMemoryLimit(memoryMiB int) string {
	return fmt.Sprintf("%.0fMiB", float64(memoryMiB)*memoryInUse)
}
