package cloudformation_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
	"joiner.sh/infra/local/vpc"
	"joiner.sh/pkg/providers/discovery"
)

// reaches reports whether the caller has a way to the service: functions and nodes in the VPC as its endpoints and
// their security groups have it, others always. IAM has no endpoint.
func (w *world) reaches(who awsemulator.Caller, service string) bool {
	f := w.account.FunctionsByRole()[who.Role]
	if who.IsInstance() {
		return w.network().Reaches([]string{"sg-node"}, service)
	}
	return len(f.Subnets) == 0 || w.network().Reaches(f.Groups, service)
}

func (w *world) network() vpc.Network {
	n, err := w.account.Network(w.nat)
	if err != nil {
		w.t.Error(err)
	}
	return n
}

// around is what is around the function: names of services lead to the endpoints with private DNS that the VPC has, and
// to public addresses where it has none.
func (w *world) around(f cloudformation.Function) discovery.Surroundings {
	return discovery.Surroundings{
		Hosts: func(ctx context.Context, cfg aws.Config) (map[string]string, error) {
			cfg.BaseEndpoint = nil
			return discovery.OwnSurroundings().Hosts(ctx, cfg)
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			service, _, _ := strings.Cut(host, ".")
			for _, e := range w.network().Endpoints {
				if e.Service == service && e.PrivateDNS {
					return []netip.Addr{netip.MustParseAddr("10.0.1.5")}, nil
				}
			}
			return []netip.Addr{netip.MustParseAddr("52.94.1.1")}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			service, _, _ := strings.Cut(address, ".")
			if w.reaches(awsemulator.Caller{Role: f.RoleARN}, service) || service == "s3" && w.s3Gateway {
				near, _ := net.Pipe()
				return near, nil
			}
			return nil, context.DeadlineExceeded
		},
	}
}

// A VPC from which functions do not reach what they call is refused by setup, which runs there, and told by service
// what is missing: an endpoint, or what the security group of one admits.
func TestANetworkWithoutWaysIsRefusedByName(t *testing.T) {
	w := newWorld(t, 3)
	w.nat, w.s3Gateway = false, true
	err := w.player.DeployStack(t.Context(), w.stack, template(t, "network", nil))
	const want = "functions do not reach ec2 at ec2.us-west-2.amazonaws.com, for which the VPC has no endpoint that answers, and their subnets no route: add ec2 to vpcEndpoints"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	w = newWorld(t, 3)
	w.nat, w.s3Gateway = false, true
	shut := template(t, "endpoints", func(resources map[string]any) {
		group := resources["EndpointsGroup18C6AF10"].(map[string]any)["Properties"].(map[string]any)
		group["SecurityGroupIngress"] = []any{}
	})
	err = w.player.DeployStack(t.Context(), w.stack, shut)
	const closed = "functions do not reach ec2 at ec2.us-west-2.amazonaws.com, which is an interface endpoint at 10.0.1.5: have the security group of that endpoint admit TCP 443"
	if err == nil || !strings.Contains(err.Error(), closed) {
		t.Errorf("error %v, want %q in it", err, closed)
	}
}

// instanceConfig signs as the software of an instance does.
func (w *world) instanceConfig(instance string) (aws.Config, error) {
	credentials, err := awsemulator.Provisioner{Cloud: w.cloud}.InstanceCredentials(instance)
	return aws.Config{Region: region, BaseEndpoint: aws.String(w.cloud.URL()), Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil })}, err
}

// boot asks EC2 about the instance, as nodeadm does before it starts the kubelet.
func (w *world) boot(instance string) error {
	cfg, err := w.instanceConfig(instance)
	if err == nil {
		_, err = ec2.NewFromConfig(cfg).DescribeInstances(w.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	}
	return err
}

// boots fails the test unless the instance of the stack can boot, which it cannot beside the endpoint of EC2 of
// commitBefore: that has private DNS and admits the functions alone.
func (w *world) boots(name string, r release) {
	w.t.Helper()
	instance := w.joined["n-web"]
	shut := r.before && formBefore(w.t, name)["Ec2Endpoint"] != nil
	if err := w.boot(instance); instance != "" && (err != nil) != shut {
		w.t.Errorf("%s: an instance boots: %v", r.code, err)
	}
}

// The endpoints of the stack answer to the nodes of the VPC as well, beside a way out and without one. They do so when
// the stack is gone and its nodes are not.
func TestNodesBootBesideTheEndpoints(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		w.s3Gateway = true
		w.deploy("plain")
		w.launch("old", linux)
		w.deploy("endpoints")
		w.launch("web", linux)
		for _, when := range []string{"the stack is there", "the stack is gone"} {
			for _, w.nat = range []bool{true, false} {
				for node, instance := range w.joined {
					if err := w.boot(instance); err != nil {
						t.Errorf("%s, a way out %t: %s does not boot: %v", when, w.nat, node, err)
					}
				}
			}
			if w.nat = true; w.stack.Status == cloudformation.DeleteComplete {
				break
			}
			if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An endpoint that admits the functions alone keeps every node out, beside a NAT gateway too: private DNS leads them to
// it.
func TestAnEndpointThatAdmitsOneGroupKeepsNodesOut(t *testing.T) {
	w := newWorld(t, 3)
	w.deploy("plain")
	w.launch("web", linux)
	shut := template(t, "endpoints", func(resources map[string]any) {
		group := resources["EndpointsGroup18C6AF10"].(map[string]any)["Properties"].(map[string]any)
		group["SecurityGroupIngress"] = []any{map[string]any{"IpProtocol": "tcp", "FromPort": 443.0, "ToPort": 443.0,
			"SourceSecurityGroupId": map[string]any{"Fn::GetAtt": []any{"FunctionsGroupBEE8AEDB", "GroupId"}}}}
	})
	if err := w.player.DeployStack(t.Context(), w.stack, shut); err != nil {
		t.Fatal(err)
	}
	if err := w.boot(w.joined["n-web"]); err == nil {
		t.Error("a node reaches EC2")
	}
}
