package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner/infra/local/cloud"
)

// Of pdb-graceful.yaml: six pods of which five must stay available.
const (
	gracefulPods   = 6
	gracefulBudget = 5
)

// interruption takes the spot node back that carries most pods of a Deployment with a budget. The budget must hold all the
// time, and all its pods must run elsewhere while the instance still lives.
func (s *story) interruption(ctx context.Context) error {
	if err := s.apply(ctx, "pdb-graceful.yaml"); err != nil {
		return err
	}
	if err := s.running(ctx, 237+gracefulPods); err != nil {
		return err
	}
	if err := s.until(ctx, "the budget of my-app is met", func(ctx context.Context) (string, bool, error) {
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
	fmt.Printf("   notice for %s (%s, %s in %s)\n", victim.PrivateDNSName, victim.ID, victim.Type, victim.Zone)
	noticed := time.Now()
	if err := s.Cloud.InterruptSpot(victim.ID, false); err != nil {
		return err
	}
	lowest, err := s.watchEvacuation(ctx, victim)
	if err != nil {
		return err
	}
	fmt.Printf("   all pods run elsewhere %.1f s after the notice; my-app never had fewer than %d available pods (budget %d)\n",
		time.Since(noticed).Seconds(), lowest, gracefulBudget)
	return s.table(ctx)
}

// busiestSpot is the spot instance with the most pods of my-app, or with the most pods.
func (s *story) busiestSpot(ctx context.Context) (cloud.Instance, error) {
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return cloud.Instance{}, err
	}
	weight := map[string]int{}
	for _, p := range pods.Items {
		weight[p.Spec.NodeName]++
		if p.Labels["app"] == "my-app" {
			weight[p.Spec.NodeName] += 1000
		}
	}
	var best cloud.Instance
	for _, i := range s.alive() {
		if i.CapacityType == "spot" && (best.ID == "" || weight[i.PrivateDNSName] > weight[best.PrivateDNSName]) {
			best = i
		}
	}
	if best.ID == "" {
		return best, errors.New("no spot instance runs")
	}
	return best, nil
}

// watchEvacuation watches until every pod runs on another node, and returns the lowest number of available my-app pods.
func (s *story) watchEvacuation(ctx context.Context, victim cloud.Instance) (lowest int, err error) {
	lowest = gracefulPods
	var broken error
	err = s.until(ctx, "the node is empty", func(ctx context.Context) (string, bool, error) {
		pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		left, up, available := 0, 0, 0
		for _, p := range pods.Items {
			if p.Spec.NodeName == victim.PrivateDNSName && p.DeletionTimestamp == nil {
				left++
				if p.Labels["app"] == "my-app" && isReady(p) {
					available++
				}
				continue
			}
			if p.DeletionTimestamp == nil && isReady(p) {
				up++
				if p.Labels["app"] == "my-app" {
					available++
				}
			}
		}
		lowest = min(lowest, available)
		if available < gracefulBudget {
			broken = fmt.Errorf("my-app has %d available pods, its budget demands %d", available, gracefulBudget)
			return "", true, nil
		}
		done := left == 0 && up >= 237+gracefulPods
		if !done && s.state(victim.ID) != "running" {
			broken = fmt.Errorf("instance %s is %s while %d pods were still on it and %d ran elsewhere", victim.ID, s.state(victim.ID), left, up)
			return "", true, nil
		}
		return fmt.Sprintf("%d pods on the node, %d run elsewhere", left, up), done, nil
	})
	return lowest, errors.Join(broken, err)
}

func (s *story) state(id string) string {
	for _, i := range s.Cloud.Instances() {
		if i.ID == id {
			return i.State
		}
	}
	return "gone"
}

func isReady(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
