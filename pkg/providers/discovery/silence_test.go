package discovery

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
)

func TestWhereServicesAre(t *testing.T) {
	for _, c := range []struct {
		cfg  aws.Config
		want []string
	}{
		{aws.Config{Region: "us-west-2"}, []string{"api.pricing.us-east-1.amazonaws.com:443", "ec2.us-west-2.amazonaws.com:443", "eks.us-west-2.amazonaws.com:443", "iam.amazonaws.com:443",
			"lambda.us-west-2.amazonaws.com:443", "s3.us-west-2.amazonaws.com:443", "ssm.us-west-2.amazonaws.com:443"}},
		{aws.Config{Region: "cn-north-1"}, []string{"api.pricing.cn-northwest-1.amazonaws.com.cn:443", "ec2.cn-north-1.amazonaws.com.cn:443", "eks.cn-north-1.amazonaws.com.cn:443",
			"iam.cn-north-1.amazonaws.com.cn:443", "lambda.cn-north-1.amazonaws.com.cn:443", "s3.cn-north-1.amazonaws.com.cn:443", "ssm.cn-north-1.amazonaws.com.cn:443"}},
		{aws.Config{Region: "us-gov-east-1"}, []string{"ec2.us-gov-east-1.amazonaws.com:443", "eks.us-gov-east-1.amazonaws.com:443", "iam.us-gov.amazonaws.com:443",
			"lambda.us-gov-east-1.amazonaws.com:443", "s3.us-gov-east-1.amazonaws.com:443", "ssm.us-gov-east-1.amazonaws.com:443"}},
		{aws.Config{Region: "us-iso-west-1"}, []string{"ec2.us-iso-west-1.c2s.ic.gov:443", "eks.us-iso-west-1.c2s.ic.gov:443", "iam.us-iso-east-1.c2s.ic.gov:443",
			"lambda.us-iso-west-1.c2s.ic.gov:443", "s3.us-iso-west-1.c2s.ic.gov:443", "ssm.us-iso-west-1.c2s.ic.gov:443"}},
		{aws.Config{Region: "eusc-de-east-1"}, []string{"ec2.eusc-de-east-1.amazonaws.eu:443", "eks.eusc-de-east-1.amazonaws.eu:443", "iam.eusc-de-east-1.amazonaws.eu:443",
			"lambda.eusc-de-east-1.amazonaws.eu:443", "s3.eusc-de-east-1.amazonaws.eu:443", "ssm.eusc-de-east-1.amazonaws.eu:443"}},
		{aws.Config{Region: "us-west-2", BaseEndpoint: aws.String("http://127.0.0.1:4566")}, slices.Repeat([]string{"127.0.0.1:4566"}, 7)},
		{aws.Config{Region: "us-west-2", BaseEndpoint: aws.String("https://aws.example")}, slices.Repeat([]string{"aws.example:443"}, 7)},
	} {
		hosts, err := serviceHosts(t.Context(), c.cfg)
		var got []string
		for _, h := range hosts {
			got = append(got, h)
		}
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.cfg.Region, err, d)
		}
	}
}

// Services that take no connection are named, with the addresses of their hosts; an isolated VPC is not asked for what
// has no private endpoint.
func TestSilentServicesAreNamed(t *testing.T) {
	private := netip.MustParseAddr("10.0.1.5")
	s := Surroundings{
		Hosts:   serviceHosts,
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{private}, nil },
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			if address == "ssm.us-west-2.amazonaws.com:443" || address == "iam.amazonaws.com:443" {
				return nil, errors.New("i/o timeout")
			}
			near, _ := net.Pipe()
			return near, nil
		},
	}
	for isolated, want := range map[bool][]string{false: {"iam", "ssm"}, true: {"ssm"}} {
		silent, err := s.FindSilent(t.Context(), aws.Config{Region: "us-west-2"}, isolated)
		var got []string
		for _, x := range silent {
			got = append(got, x.Service)
			if len(x.Addresses) != 1 || x.Addresses[0] != "10.0.1.5" || !x.Private {
				t.Errorf("%s: addresses %v", x.Service, x.Addresses)
			}
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("isolated %t: %v (-want +got):\n%s", isolated, err, d)
		}
	}
}
