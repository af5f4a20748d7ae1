package preflight_test

import (
	"testing"

	"joiner.sh/pkg/install/preflight"
)

func TestWhichRoutesLeadToS3(t *testing.T) {
	const list = "pl-s3"
	for _, c := range []struct {
		to, via string
		leads   bool
	}{
		{"0.0.0.0/0", "nat-1", true}, {"0.0.0.0/0", "tgw-1", true}, {"0.0.0.0/0", "eni-1", true}, {"0.0.0.0/0", "igw-1", false}, {"0.0.0.0/0", "", false},
		{list, "vpce-1", true}, {"pl-dynamodb", "vpce-1", false}, {"10.0.0.0/16", "local", false}, {"", "vpce-1", false},
	} {
		if got := preflight.LeadsToS3(c.to, c.via, list); got != c.leads {
			t.Errorf("%s via %s leads to S3: %t", c.to, c.via, got)
		}
	}
	if preflight.LeadsToS3("", "", "") {
		t.Error("an unknown prefix list was taken for that of S3")
	}
}

func TestWhichRoutesMayLeadToS3(t *testing.T) {
	for _, c := range []struct {
		to, via string
		may     bool
	}{
		{"0.0.0.0/1", "tgw-1", true}, {"128.0.0.0/1", "nat-1", true}, {"0.0.0.0/1", "igw-1", false}, {"10.0.0.0/16", "local", false},
		{"10.0.0.0/8", "tgw-1", false}, {"pl-mine", "eni-1", true}, {"pl-dynamodb", "vpce-1", false}, {"pl-mine", "", false}, {"", "nat-1", false},
	} {
		if got := preflight.MayLeadToS3(c.to, c.via); got != c.may {
			t.Errorf("%s via %s may lead to S3: %t", c.to, c.via, got)
		}
	}
}
