package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
)

// prepareCluster applies pool and class and waits until refresh has made the class usable.
func (s *story) prepareCluster(ctx context.Context) error {
	if err := s.applyManifest(ctx, "nodepool-v1.yaml"); err != nil {
		return err
	}
	// until its chapter: the others count on the nodes that they made
	if err := s.consolidateAfter(ctx, "Never"); err != nil {
		return err
	}
	return waitUsable(ctx, s)
}

// waitUsable has refresh look at the pool and the class called default, and waits until they are Ready.
func waitUsable(ctx context.Context, s *story) error {
	if _, err := s.Host.InvokeFunction(ctx, s.FunctionName("refresh"), "Event", nil); err != nil {
		return err
	}
	err := s.pollUntil(ctx, "EC2NodeClass default is Ready", func(ctx context.Context) (string, bool, error) {
		obj, err := s.Kube.Dynamic.Resource(env.NodeClasses()).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return conditionOf(obj, "Ready")
	})
	if err != nil {
		return err
	}
	return s.pollUntil(ctx, "NodePool default is Ready", func(ctx context.Context) (string, bool, error) {
		obj, err := s.Kube.Dynamic.Resource(env.NodePools()).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return conditionOf(obj, "Ready")
	})
}

// firstPods shows that a cluster without any node gets what its pods need.
func (s *story) firstPods(ctx context.Context) error {
	nodes, err := s.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if n := len(nodes.Items); n != 0 {
		return fmt.Errorf("%d nodes exist before any pod does, want 0", n)
	}
	for _, m := range []string{"inflate-spot.yaml", "inflate-team-affinity.yaml"} {
		if err := s.applyManifest(ctx, m); err != nil {
			return err
		}
	}
	if err := s.waitRunning(ctx, 205); err != nil {
		return err
	}
	if err := s.printNodes(ctx); err != nil {
		return err
	}
	return s.printLatency(ctx)
}

// unavailable takes every spot offering in use off the market and shows that the next burst gets others.
func (s *story) unavailable(ctx context.Context) error {
	var gone []string
	for _, i := range s.liveInstances() {
		offering := i.Type + " in " + i.Zone
		if i.CapacityType != "spot" || slices.Contains(gone, offering) {
			continue
		}
		gone = append(gone, offering)
		s.Cloud.LimitCapacity(awsemulator.Capacity{CapacityType: "spot", InstanceType: i.Type, Zone: i.Zone, Limit: 0})
	}
	if len(gone) == 0 {
		return errors.New("no spot instance runs whose offering could be unavailable")
	}
	fmt.Printf("   unavailable: %s\n", strings.Join(gone, ", "))
	before := s.instanceIDs()
	if err := s.applyManifest(ctx, "burst.yaml"); err != nil {
		return err
	}
	if err := s.waitRunning(ctx, 225); err != nil {
		return err
	}
	for _, i := range s.liveInstances() {
		if !before[i.ID] && slices.Contains(gone, i.Type+" in "+i.Zone) {
			return fmt.Errorf("instance %s is a %s in %s, which is unavailable", i.ID, i.Type, i.Zone)
		}
	}
	return s.printNodes(ctx)
}

// onDemand sells spot out everywhere: pods that do not insist on it are served by on-demand instances.
func (s *story) onDemand(ctx context.Context) error {
	s.Cloud.LimitCapacity(awsemulator.Capacity{CapacityType: "spot", Limit: 0})
	before := s.instanceIDs()
	if err := s.applyManifest(ctx, "burst-anywhere.yaml"); err != nil {
		return err
	}
	if err := s.waitRunning(ctx, 237); err != nil {
		return err
	}
	for _, i := range s.liveInstances() {
		if !before[i.ID] && i.CapacityType != "on-demand" {
			return fmt.Errorf("instance %s is %s although spot is unavailable", i.ID, i.CapacityType)
		}
	}
	s.Cloud.ClearCapacity()
	return s.printNodes(ctx)
}

// cleanUp deletes what the user made and counts what is left.
func (s *story) cleanUp(ctx context.Context) error {
	for _, m := range []string{"inflate-spot.yaml", "inflate-team-affinity.yaml", "burst.yaml", "burst-anywhere.yaml",
		"pdb-graceful.yaml", "pdb-team.yaml"} {
		if err := s.removeManifest(ctx, m); err != nil {
			return err
		}
	}
	err := s.pollUntil(ctx, "the pods are gone", func(ctx context.Context) (string, bool, error) {
		pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf("%d pods left", len(pods.Items)), len(pods.Items) == 0, nil
	})
	if err != nil {
		return err
	}
	if err := s.Kube.Dynamic.Resource(env.NodeClaims()).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}); err != nil {
		return err
	}
	if err := s.pollUntil(ctx, "nothing is left", func(ctx context.Context) (string, bool, error) {
		l, err := s.countLeftovers(ctx)
		return l.String(), err == nil && l == leftovers{}, err
	}); err != nil {
		return err
	}
	l, err := s.countLeftovers(ctx)
	fmt.Println("   left: " + l.String())
	return err
}

// conditionOf says what a condition of the object says, and whether it is true.
func conditionOf(obj *unstructured.Unstructured, kind string) (says string, is bool, err error) {
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return "", false, err
	}
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != kind {
			continue
		}
		return fmt.Sprintf("%s=%v %v %v", kind, m["status"], m["reason"], m["message"]), m["status"] == "True", nil
	}
	return "no condition " + kind + " yet", false, nil
}

// pollUntil polls until what holds, and says what it saw last when it never does.
func (s *story) pollUntil(ctx context.Context, what string, look func(context.Context) (string, bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began, last := time.Now(), "nothing"
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		saw, ok, err := look(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ok {
			fmt.Printf("   %s after %.1f s\n", what, time.Since(began).Seconds())
			return nil
		}
		if err == nil {
			last = saw
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s; last seen: %s", what, patience, last)
		case <-tick.C:
		}
	}
}
