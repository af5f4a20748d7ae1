package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
)

// waitRunning waits until so many pods run in the default namespace and none waits.
func (s *story) waitRunning(ctx context.Context, want int) error {
	shown := time.Now()
	return s.pollUntil(ctx, fmt.Sprintf("%d pods run", want), func(ctx context.Context) (string, bool, error) {
		pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		var up int
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				up++
			}
		}
		saw := fmt.Sprintf("%d of %d pods run on %d instances", up, want, len(s.liveInstances()))
		if time.Since(shown) > 2*time.Second {
			shown = time.Now()
			fmt.Println("   " + saw)
		}
		return saw, up >= want, nil
	})
}

// liveInstances lists the instances that have not ended.
func (s *story) liveInstances() []awsemulator.Instance {
	var out []awsemulator.Instance
	for _, i := range s.Cloud.DescribedInstances() {
		if i.State == "pending" || i.State == "running" {
			out = append(out, i)
		}
	}
	return out
}

func (s *story) instanceIDs() map[string]bool {
	out := map[string]bool{}
	for _, i := range s.liveInstances() {
		out[i.ID] = true
	}
	return out
}

// printNodes prints the nodes with what they cost and carry.
func (s *story) printNodes(ctx context.Context) error {
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	on := map[string]int{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			on[p.Spec.NodeName]++
		}
	}
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"node", "type", "capacity", "zone", "USD/h", "pods", ""})
	var price float64
	var count int
	all := s.liveInstances()
	slices.SortStableFunc(all, func(a, b awsemulator.Instance) int {
		return cmp.Compare(a.PrivateDNSName,
			b.PrivateDNSName)
	})
	for _, i := range all {
		note := ""
		if !s.seen[i.ID] {
			note, s.seen[i.ID] = "new", true
		}
		t.AppendRow(table.Row{i.PrivateDNSName, i.Type, i.CapacityType, i.Zone, fmt.Sprintf("%.4f", i.PriceUSD),
			on[i.PrivateDNSName], note})
		price, count = price+i.PriceUSD, count+on[i.PrivateDNSName]
	}
	t.AppendFooter(table.Row{fmt.Sprintf("%d nodes", len(all)), "", "", "", fmt.Sprintf("%.4f", price), count, ""})
	t.Render()
	return nil
}

// printLatency prints how long the first pods waited for CreateFleet and for their node.
func (s *story) printLatency(ctx context.Context) error {
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var first, bound time.Time
	for _, p := range pods.Items {
		if t := p.CreationTimestamp.Time; first.IsZero() || t.Before(first) {
			first = t
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(bound) {
				bound = c.LastTransitionTime.Time
			}
		}
	}
	for _, c := range s.Cloud.LoggedCalls() {
		if c.Action == "CreateFleet" {
			fmt.Printf("   from the first pending pod to the first CreateFleet: %.1f s; to the last pod on a node: %.1f s (API times have whole seconds)\n",
				c.Time.Sub(first).Seconds(), bound.Sub(first).Seconds())
			return nil
		}
	}
	return fmt.Errorf("no CreateFleet call was made")
}

// leftovers counts what must be gone in the end.
type leftovers struct{ instances, claims, nodes, finalizers int }

func (l leftovers) String() string {
	return fmt.Sprintf("%d instances, %d NodeClaims, %d nodes, %d finalizers", l.instances, l.claims, l.nodes,
		l.finalizers)
}

func (s *story) countLeftovers(ctx context.Context) (l leftovers, err error) {
	for _, i := range s.Cloud.DescribedInstances() {
		if i.State != "terminated" {
			l.instances++
		}
	}
	claims, err := s.Kube.Dynamic.Resource(env.NodeClaims()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, err
	}
	nodes, err := s.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, err
	}
	l.claims, l.nodes = len(claims.Items), len(nodes.Items)
	for _, c := range claims.Items {
		l.finalizers += len(c.GetFinalizers())
	}
	for _, n := range nodes.Items {
		l.finalizers += len(n.Finalizers)
	}
	return l, nil
}
