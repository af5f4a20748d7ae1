package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneBurst is a manifest of the story, and how many pods it has. They take any node.
const (
	oneBurst     = "burst-anywhere.yaml"
	podsOfABurst = 12
)

// tryStack runs the functions of a synthesized stack, such as a release's, and gives pods to the NodePool default, with
// its class in the file too.
func tryStack(ctx context.Context, root, assembly, manifest string) error {
	assembly, err := filepath.Abs(assembly)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	return playChapters(ctx, playOptions{root: root, assembly: assembly, chapters: []step{
		{"the NodePool of " + filepath.Base(manifest), func(s *story, ctx context.Context) error {
			if err := s.Kube.ApplyManifest(ctx, text); err != nil {
				return err
			}
			return waitUsable(ctx, s)
		}},
		{fmt.Sprintf("%d pods on no node", podsOfABurst), func(s *story, ctx context.Context) error {
			return runBurst(ctx, s)
		}},
	}})
}

// runBurst waits until pods run, each on a node of the NodePool.
func runBurst(ctx context.Context, s *story) error {
	if err := s.applyManifest(ctx, oneBurst); err != nil {
		return err
	}
	if err := s.waitRunning(ctx, podsOfABurst); err != nil {
		return err
	}
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		node, err := s.Kube.CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pool := node.Labels["karpenter.sh/nodepool"]; pool != "default" {
			return fmt.Errorf("pod %s runs on node %s of NodePool %q, want default", p.Name, node.Name, pool)
		}
	}
	return s.printNodes(ctx)
}
