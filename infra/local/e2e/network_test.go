package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/vpc"
	"joiner.sh/pkg/testing/shortrun"
)

// An endpoint of EC2 in the VPC, of whomever, has private DNS and admits one security group, which nodes do not have:
// they are launched and do not join, and the NodeClaim says for what it waits.
func TestNodesThatDoNotReachEC2DoNotJoin(t *testing.T) {
	shortrun.Skip(t)
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

// besideEC2 are the services that functions call beside EC2 and the API server.
func besideEC2() []string {
	return []string{"arc-zonal-shift", "eks", "iam", "lambda", "monitoring", "pricing", "s3", "savingsplans", "servicequotas", "sqs", "ssm", "sts"}
}

// quietServices are sets of services that are out of order at the same time: all, and each alone and with each other
// one. At short length of those one that chance picks.
func quietServices() [][]string {
	out := [][]string{besideEC2()}
	for i, one := range besideEC2() {
		for _, other := range besideEC2()[i:] {
			out = append(out, slices.Compact([]string{one, other}))
		}
	}
	if testing.Short() {
		i := 1 + rand.IntN(len(out)-1)
		out = [][]string{out[0], out[i]}
	}
	return out
}

// Services swallow packets, or take a minute to answer, and EC2 and the API server do not. A pod gets its node and a
// node that is deleted is drained, by passes of provision and lifecycle that may end with an error about such a service,
// and are stopped at no time-out.
func TestServicesThatDoNotAnswerKeepNoNodeWaiting(t *testing.T) {
	w := start(t)
	w.ready()
	for n, quiet := range quietServices() {
		kind := []awsemulator.FaultKind{awsemulator.Swallow, awsemulator.Slow}[n%2]
		for _, s := range quiet {
			w.Cloud.AddFault(awsemulator.Fault{Service: s, Kind: kind, Delay: awsemulator.Duration(time.Minute)})
		}
		if n%2 == 0 {
			w.forget() // what a new process has to ask is more
		}
		w.comeAndGo(fmt.Sprint("web-", n))
		w.Cloud.ClearFaults()
		for name, f := range w.Host.CurrentStats().Functions {
			if f.TimedOut > 0 {
				t.Fatalf("%s of %v: %d invocations of %s were stopped at their time-out", kind, quiet, f.TimedOut, name)
			}
		}
	}
}

// comeAndGo has a pod get a node, and the node drained when the pod is gone, whatever passes end with.
func (w *world) comeAndGo(app string) {
	w.t.Helper()
	w.apply(deployment{name: app, replicas: 1, alone: true})
	w.exist(app, 1)
	w.until(app+" is served", func() (string, bool) {
		w.invoke("provision", nil)
		w.invoke("lifecycle", nil)
		n := w.up(app)
		return fmt.Sprintf("%d pods up, %d claims", n, len(w.claims())), n == 1
	})
	claim := w.oneClaim().GetName()
	if err := w.Kube.AppsV1().Deployments("default").Delete(w.ctx, app, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Kube.Dynamic.Resource(env.NodeClaims()).Delete(w.ctx, claim, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the node is gone", func() (string, bool) {
		w.invoke("lifecycle", nil)
		return fmt.Sprintf("%d nodes, %d claims", len(w.nodes()), len(w.claims())), len(w.nodes())+len(w.claims()) == 0
	})
	w.settled()
}
