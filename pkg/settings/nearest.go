package settings

import "strings"

// Removed says what there is instead of a setting that there was once; false for any other name.
func Removed(name string) (instead string, found bool) {
	instead, found = map[string]string{
		"nodeTags":                "use tags, which are on the node role too",
		"staleCatalogAlarm":       "the alarm CatalogOld rings after 6h",
		"unavailableOfferingTTL":  "it is a constant now, 3m, as in Karpenter",
		"registrationTimeout":     "it is a constant now, 15m, as in Karpenter",
		"maxNodeClaimsPerPass":    "it is a constant now, 100; the rest waits for the next pass",
		"initializationTimeout":   "it is a constant now, 30m",
		"detachTimeout":           "it is a constant now, 30m",
		"nominatedPodsOnly":       "new nodes are kept for their pods in every cluster, for a minute at most",
		"maxSpotPoolFraction":     "it is a constant now, 0.8",
		"alwaysWatch":             "write it as trigger: watch",
		"push":                    "write it as trigger: push",
		"batchMax":                "it is a constant now, 10s; batchIdle says how long a quiet moment is",
		"refreshInterval":         "it is a constant now, 5m; a changed EC2NodeClass or NodePool is looked at at once",
		"concurrencyQuota":        "give interruptionConcurrency a number where the account's quota is not 1000",
		"hibernationTimeZone":     "write it before hibernationSchedule, such as CRON_TZ=Europe/Berlin 0 20 * * 1-5",
		"nodesAlarm":              "priceAlarmUSD rings when nodes cost more than expected, and limits of NodePools bound them",
		"minSpotInstanceTypes":    "it is a constant now, 15, as in Karpenter",
		"consolidationPayback":    "it is a constant now, 1h; podEvictionCostUSD makes consolidation rarer",
		"unschedulablePodsAlarm":  "it is a constant now, 15m",
		"decisionLogDays":         "logRetentionDays holds for stored passes too",
		"savingsPlanShare":        "write it as commitments, such as commitments: 0.8",
		"remoteWriteAuth":         "requests to Amazon Managed Service for Prometheus are signed, others have remoteWriteSecret",
		"reservationConcurrency":  "interruptionConcurrency holds for reservationinterruption too",
		"windowsNodeRole":         "name the role as windowsNodes",
		"vpcEndpointServices":     "list the services as vpcEndpoints, such as vpcEndpoints: [\"ssm\", \"lambda\"]",
		"tracesURL":               "decisionLog tells what a pass decided and why, and tracing sends times of invocations to AWS X-Ray",
		"tracesSecret":            "there is no tracesURL any more; decisionLog and tracing remain",
		"podInterruptionCostUSD":  "EC2 chooses spot pools by price-capacity-optimized, as for Karpenter; learned rates saved nearly nothing",
		"spotRecordBucket":        "no record of spot pools is kept any more; delete what is below spot-pools/ in the bucket",
		"garbageCollectionMinAge": "it is a constant now, 30s",
		"packingIterations":       "a plan takes as many steps as pay; joiner plan has --search-steps",
		"distFolder":              "it is a constant now, .local/dist; CDK apps of your own have ClusterProps.Functions",
	}[name]
	return instead, found
}

// Nearest returns the name of the setting that somebody most likely means who writes the key: the one of that name or
// environment variable in other capitals, else the one that fewest letters tell from it. It is false where none is
// near. Settings that cdk.json refuses are not looked at.
func Nearest(key string) (name string, found bool) {
	least := max(2, len(key)/4) + 1
	for _, s := range AllSettings() {
		if s.ByStack || s.ByTests {
			continue
		}
		if strings.EqualFold(s.Name, key) || strings.EqualFold(s.Env, key) {
			return s.Name, true
		}
		if d := EditDistance(strings.ToLower(s.Name), strings.ToLower(key)); d < least {
			least, name = d, s.Name
		}
	}
	return name, name != ""
}

// EditDistance returns the number of bytes that must be added, removed or replaced to make one text of the other.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
