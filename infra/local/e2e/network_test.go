package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/vpc"
)

// An endpoint of EC2 in the VPC, of whomever, has private DNS and admits one security group, which nodes do not have:
// they are launched and do not join, and the NodeClaim says for what it waits.
func TestNodesThatDoNotReachEC2DoNotJoin(t *testing.T) {
	w := start(t, func(o *env.Options) {
		o.Network = &vpc.Network{WayOut: true, Endpoints: []vpc.Endpoint{{Service: "ec2", PrivateDNS: true, Groups: []string{"sg-endpoints"}}},
			Rules: []vpc.Rule{{Into: "sg-endpoints", From: "sg-functions"}}}
	})
	w.ready()
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	w.until("the instance is kept out", func() (string, bool) {
		failed := fmt.Sprint(w.Kubelets.JoinFailures())
		return failed, strings.Contains(failed, "ask EC2 about the instance")
	}, "provision", "lifecycle")
	c := w.oneClaim()
	if len(w.nodes()) > 0 || len(w.living()) != 1 || status(*c, "Launched")["status"] != "True" || status(*c, "Registered")["status"] == "True" {
		t.Errorf("%d nodes, %d instances, conditions %v", len(w.nodes()), len(w.living()), c.Object["status"])
	}
}
