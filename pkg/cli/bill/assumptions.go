package bill

import "fmt"

// Assumptions are the sentences about what the bill counts with and nobody measured, for clusters whose nodes live so
// many hours.
func Assumptions(nodeHours float64) []string {
	return []string{
		fmt.Sprintf("A tick waits %.1f s for AWS, a refresh %.0f s, and both %.0f ms for each request to the API server.",
			overNetwork, refreshWaits, eachRequest*1000),
		fmt.Sprintf("An invocation that finds a node coming or going runs for %d s.", staySeconds),
		fmt.Sprintf("A tick takes %.2f s of processor time, and more with the size of the cluster.", leastCPU),
		fmt.Sprintf("Lambda keeps a process for %d hours.", processHours),
		fmt.Sprintf("A node lives %.0f hours. It has %d state changes, each an invocation of %.1f s and 512 MiB.",
			nodeHours, eventsPerNode, eventSeconds),
		fmt.Sprintf("Lambda logs %d bytes about each invocation; a tick logs %d more about its requests.",
			lambdaLines, trafficLog),
		fmt.Sprintf("Beyond %d nodes passes write no more than there.", mostInMemory),
		fmt.Sprintf("The metrics of passes come with %d others and %d for each NodePool.", otherSeries, poolSeries),
		fmt.Sprintf("There are %d more by reason if a node comes or goes in more than a tenth of the minutes.",
			reasonSeries),
		fmt.Sprintf("Each tick asks S3 whether the catalog of %.0f kB is new; %d functions read each new one.",
			catalogBytes/1000, catalogReaders),
		fmt.Sprintf("With more than %d nodes lifecycle stores a checkpoint once a minute.", checkpointNodes),
		fmt.Sprintf("A state change of an instance outside the cluster takes %.1f s.", foreignSeconds),
		fmt.Sprintf("Lambda traces the first invocation of each second and %.0f %% of the rest.", tracedBeyond*100),
		fmt.Sprintf("Lambda polls each queue %d times an hour with each of %d pollers.", pollsPerHour, pollersPerQueue),
		"Two of three answers of the API server come from another zone.",
	}
}
