package setup_test

import (
	"strings"
	"testing"

	"joiner/pkg/install/setup"
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
		if got := setup.LeadsToS3(c.to, c.via, list); got != c.leads {
			t.Errorf("%s via %s leads to S3: %t", c.to, c.via, got)
		}
	}
	if setup.LeadsToS3("", "", "") {
		t.Error("an unknown prefix list was taken for that of S3")
	}
}

func TestSubnetsWithoutAWayToS3AreNamed(t *testing.T) {
	if err := setup.CheckWays([]setup.Way{{"subnet-a", true}}); err != nil {
		t.Error(err)
	}
	err := setup.CheckWays([]setup.Way{{"subnet-a", true}, {"subnet-b", false}})
	if err == nil || !strings.Contains(err.Error(), "functions in subnet-b cannot reach S3") {
		t.Errorf("error %v", err)
	}
}
