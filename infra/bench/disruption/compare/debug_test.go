package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"joiner/infra/bench/karpenter"
	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
	"joiner/pkg/disrupt"
	"joiner/pkg/pass"
)

func TestDebug(t *testing.T) {
	c, _ := catalog.Decode(builtin.Data())
	c = smallCatalog(c)
	karpenter.Prepare()
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	s := generate(c, seed)
	snap := snapshotOf(c, s.before())
	fmt.Printf("%+v\n", pass.Decide(snap).Plan.Existing)
	for _, p := range snap.Pods {
		fmt.Println(p.Key(), p.NodeName, p.Unscheduled, p.Phase, p.Owner, p.NodeSelector, p.Need.CPU, p.Deleting, p.Labels, p.DoNotDisrupt, p.Tolerations)
	}
	for _, n := range snap.Nodes {
		fmt.Println(n.Name, n.Labels["karpenter.sh/nodepool"], n.Taints, n.Allocatable.CPU, n.Ready, n.Deleting)
	}
	p, m := disrupt.Next(snap, disrupt.Memory{}, sells(c, snap.Now))
	for _, l := range p.Lines() {
		fmt.Println(l)
	}
	snap = snapshotOf(c, s.after())
	p, _ = disrupt.Next(snap, m, sells(c, snap.Now))
	for _, l := range p.Lines() {
		fmt.Println(l)
	}
	if os.Getenv("YAML") != "" {
		fmt.Println(s)
	}
	for _, p := range snap.Pools {
		fmt.Println(p.Name, p.Static, p.Replicas, p.Limited, p.Limits, p.Disruption, p.Ready, p.Deleting)
	}
	for _, n := range snap.Claims {
		fmt.Println(n.Name, n.Pool, n.NodeName, n.Deleting, n.LastPodEvent, n.TerminationGrace, n.Labels["node.kubernetes.io/instance-type"], n.Labels["karpenter.sh/capacity-type"], n.Labels["topology.kubernetes.io/zone"])
	}
}
