package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/awsemulator"
)

// Of pdb-graceful.yaml: six pods of which five must stay available.
const (
	gracefulPods   = 6
	gracefulBudget = 5
	podsBefore     = 237 // of the chapters before
)

// showInterruption takes the spot node back that carries most pods of a Deployment with a budget. The budget must hold
// all the time, new capacity must be launched for the pods, and all of them must run elsewhere while the instance still
// lives.
func (s *story) showInterruption(ctx context.Context) error {
	// With every other node cordoned the six pods meet on new nodes, and when one of those goes, nothing else has room
	// for them.
	if err := s.cordonNodes(ctx, true); err != nil {
		return err
	}
	if err := s.applyManifest(ctx, "pdb-graceful.yaml"); err != nil {
		return err
	}
	if err := s.waitRunning(ctx, podsBefore+gracefulPods); err != nil {
		return err
	}
	if err := s.pollUntil(ctx, "the budget of my-app is met", func(ctx context.Context) (string, bool, error) {
		b, err := s.Kube.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "my-app", metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf("%d healthy", b.Status.CurrentHealthy), b.Status.CurrentHealthy >= gracefulPods, nil
	}); err != nil {
		return err
	}
	victim, err := s.busiestSpot(ctx)
	if err != nil {
		return err
	}
	budget, err := s.followBudget(ctx, "my-app", gracefulBudget)
	if err != nil {
		return err
	}
	defer budget.stop()
	fmt.Printf("   notice for %s (%s, %s in %s)\n", victim.PrivateDNSName, victim.ID, victim.Type, victim.Zone)
	noticed, before := time.Now(), s.instanceIDs()
	if err := s.Cloud.InterruptSpot(victim.ID, false); err != nil {
		return err
	}
	if err := s.waitEvacuated(ctx, victim); err != nil {
		return err
	}
	took := time.Since(noticed)
	if err := s.checkReplaced(before); err != nil {
		return err
	}
	lowest, err := budget.lowestAvailable()
	if err != nil {
		return err
	}
	fmt.Printf("   all pods run elsewhere %.1f s after the notice, the instance lives still; of my-app at least %d pods were available at "+
		"any time (budget %d)\n", took.Seconds(), lowest, gracefulBudget)
	if err := s.cordonNodes(ctx, false); err != nil {
		return err
	}
	return s.printNodes(ctx)
}

// checkReplaced fails unless an instance was launched since the notice.
func (s *story) checkReplaced(before map[string]bool) error {
	for _, i := range s.liveInstances() {
		if !before[i.ID] {
			fmt.Printf("   replacement: %s (%s, %s in %s)\n", i.PrivateDNSName, i.CapacityType, i.Type, i.Zone)
			return nil
		}
	}
	return errors.New("no instance was launched for the pods of the interrupted node")
}

// cordonNodes makes all nodes unschedulable or schedulable again, as kubectl cordon does.
func (s *story) cordonNodes(ctx context.Context, on bool) error {
	nodes, err := s.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
	for _, n := range nodes.Items {
		if _, err := s.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// busiestSpot is the spot instance with the most pods of my-app, or with the most pods.
func (s *story) busiestSpot(ctx context.Context) (awsemulator.Instance, error) {
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return awsemulator.Instance{}, err
	}
	weight := map[string]int{}
	for _, p := range pods.Items {
		weight[p.Spec.NodeName]++
		if p.Labels["app"] == "my-app" {
			weight[p.Spec.NodeName] += 1000
		}
	}
	var best awsemulator.Instance
	for _, i := range s.liveInstances() {
		if i.CapacityType == "spot" && (best.ID == "" || weight[i.PrivateDNSName] > weight[best.PrivateDNSName]) {
			best = i
		}
	}
	if best.ID == "" {
		return best, errors.New("no spot instance runs")
	}
	return best, nil
}

// waitEvacuated waits until every pod runs on another node, and fails if the instance ends before that.
func (s *story) waitEvacuated(ctx context.Context, victim awsemulator.Instance) error {
	var broken error
	err := s.pollUntil(ctx, "the node is empty", func(ctx context.Context) (string, bool, error) {
		pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		left, up := 0, 0
		for _, p := range pods.Items {
			switch {
			case p.DeletionTimestamp != nil:
			case p.Spec.NodeName == victim.PrivateDNSName:
				left++
			case isReady(&p):
				up++
			}
		}
		saw := fmt.Sprintf("%d pods on the node, %d run elsewhere", left, up)
		done := left == 0 && up >= podsBefore+gracefulPods
		if !done && s.instanceState(victim.ID) != "running" {
			broken = fmt.Errorf("instance %s is %s already: %s", victim.ID, s.instanceState(victim.ID), saw)
			return saw, true, nil
		}
		return saw, done, nil
	})
	return errors.Join(broken, err)
}

func (s *story) instanceState(id string) string {
	for _, i := range s.Cloud.DescribedInstances() {
		if i.ID == id {
			return i.State
		}
	}
	return "gone"
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
