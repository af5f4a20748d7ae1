package timeseries

import "strings"

// bucketsOf are the upper bounds of the buckets of a histogram, in seconds.
func bucketsOf(family string) []float64 {
	switch {
	case strings.HasPrefix(family, "operator_"):
		return doublingBuckets(bucketFirst, bucketCount)
	case family == claimTermination:
		return doublingBuckets(1, 12)
	case family == instanceTermination:
		return doublingBuckets(1, 11)
	case family == nodeLifetime:
		return []float64{900, 1800, 2700, 3600, 7200, 14400, 21600, 28800, 36000, 43200, 57600, 72000, 86400, 172800,
			259200, 432000, 864000, 1296000, 1728000, 2160000, 2592000}
	}
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
		1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450,
		600}
}

func doublingBuckets(first float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = first
		first *= bucketFactor
	}
	return out
}
