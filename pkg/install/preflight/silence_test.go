package preflight

import (
	"strings"
	"testing"

	"joiner.sh/pkg/model/findings"
)

func TestWhatIsMissingForASilentService(t *testing.T) {
	private, public := []string{"10.0.1.5"}, []string{"52.94.1.1"}
	for _, c := range []struct {
		silence    Silence
		level      findings.Level
		what, mend string
	}{
		{Silence{"ec2", "ec2.us-west-2.amazonaws.com", private, true}, findings.Broken, "an interface endpoint at 10.0.1.5", "have the security group of that endpoint admit TCP 443"},
		{Silence{"ssm", "ssm.us-west-2.amazonaws.com", public, false}, findings.Broken, "no endpoint that answers, and their subnets no route", "add ssm to vpcEndpoints, or route the subnets"},
		{Silence{"lambda", "lambda.us-west-2.amazonaws.com", nil, false}, findings.Broken, "a name that the VPC's DNS does not know", "--enable-dns-support"},
		{Silence{"s3", "s3.us-west-2.amazonaws.com", public, false}, findings.Broken, "do not reach s3", "add a gateway endpoint for S3"},
		{Silence{"iam", "iam.amazonaws.com", public, false}, findings.Warning, "do not reach iam", "set isolatedVPC"},
	} {
		got := JudgeSilence([]Silence{c.silence})
		if len(got) != 1 || got[0].Level != c.level || !strings.Contains(got[0].What, c.what) || !strings.Contains(got[0].Mend, c.mend) {
			t.Errorf("%s: %+v, want %s: ... %s ...: ... %s ...", c.silence.Service, got, c.level, c.what, c.mend)
		}
	}
}
