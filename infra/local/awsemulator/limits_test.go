package awsemulator_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/smithy-go"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/testing/requestlimits"
)

func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// TestAnAccountIsThrottled: calls beyond a bucket are refused in the words of the service, and no test that clears its
// faults clears that.
func TestAnAccountIsThrottled(t *testing.T) {
	slow := []requestlimits.Limit{{Service: "eks", Action: "DescribeCluster", Burst: 2, PerSecond: 0.0001, Source: requestlimits.Assumed},
		{Service: "ec2", Action: "Describe*", Burst: 1, PerSecond: 0.0001, Source: requestlimits.Assumed}}
	r := start(t, awsemulator.Options{Limits: slow})
	r.ClearFaults()
	cfg := r.cfg
	cfg.RetryMaxAttempts = 1
	describe := func() string {
		_, err := eks.NewFromConfig(cfg).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
		return codeOf(err)
	}
	subnets := func() string {
		_, err := ec2.NewFromConfig(cfg).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		return codeOf(err)
	}
	for i, want := range []string{"", "", "ThrottlingException", "ThrottlingException"} {
		if got := describe(); got != want {
			t.Errorf("call %d of DescribeCluster: %q, want %q", i+1, got, want)
		}
	}
	for i, want := range []string{"", "RequestLimitExceeded"} {
		if got := subnets(); got != want {
			t.Errorf("call %d of DescribeSubnets: %q, want %q", i+1, got, want)
		}
	}
}
