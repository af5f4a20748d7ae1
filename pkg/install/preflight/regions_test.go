package preflight

import "testing"

// Where there are no function URLs nobody makes any: in regions that the guide of Lambda names, and outside of the
// partition aws.
func TestWhereFunctionURLsAre(t *testing.T) {
	for region, want := range map[string]bool{"us-east-1": true, "mx-central-1": true, "eu-south-2": false, "me-central-1": false, "cn-north-1": false,
		"us-gov-west-1": false, "eusc-de-east-1": false, "us-iso-east-1": false, "us-isob-west-1": false} {
		if got := HasFunctionURLs(region); got != want {
			t.Errorf("%s: %t, want %t", region, got, want)
		}
	}
}
