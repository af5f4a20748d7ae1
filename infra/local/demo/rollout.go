package main

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/kubelet"
	"joiner.sh/pkg/api/joiner/v1alpha1"
)

// The images of the story, by what becomes of nodes with them.
const (
	firstImage = "ami-0000000000000000a"
	badImage   = "ami-0000000000000000b" // never Ready
	goodImage  = "ami-0000000000000000c"
	rolledPods = 4 // of rollout.yaml, each on a node of its own
)

// rolloutSteps are the chapters of joiner-local rollout.
func rolloutSteps() []step {
	return []step{
		{"a pool, its class with an image, and a NodeRollout: rollout.yaml", asRollout(rolloutStory.prepareRollout)},
		{"the class gets an image whose nodes never become Ready", asRollout(rolloutStory.badRollout)},
		{"the class gets a good image", asRollout(rolloutStory.goodRollout)},
	}
}

// rolloutStory is what the chapters of a rollout do in a story.
type rolloutStory struct{ *story }

// asRollout makes a chapter of any story of one of a rollout.
func asRollout(chapter func(rolloutStory, context.Context) error) func(*story, context.Context) error {
	return func(s *story, ctx context.Context) error { return chapter(rolloutStory{s}, ctx) }
}

// prepareRollout makes four nodes of the first image, which the NodeRollout trusts.
func (s rolloutStory) prepareRollout(ctx context.Context) error {
	for _, id := range []string{firstImage, badImage, goodImage} {
		s.Cloud.AddImage(id, "image-"+id[len(id)-1:], "x86_64")
	}
	s.Kubelets.SetBehavior(func(i kubelet.Instance) kubelet.Behavior {
		return kubelet.Behavior{NeverReady: i.ImageID == badImage}
	})
	if err := s.applyManifest(ctx, "rollout.yaml"); err != nil {
		return err
	}
	if _, err := s.Host.InvokeFunction(ctx, s.FunctionName("refresh"), "Event", nil); err != nil {
		return err
	}
	if err := s.waitRunning(ctx, rolledPods); err != nil {
		return err
	}
	if err := s.untilRollout(ctx, "the NodeRollout trusts what there is", func(r v1alpha1.NodeRolloutStatus) bool {
		return r.Phase == "Healthy" && r.LastGoodRevision != ""
	}); err != nil {
		return err
	}
	return s.printNodes(ctx)
}

// badRollout: one node is made with the image, no pod is evicted for it, and it goes again.
func (s rolloutStory) badRollout(ctx context.Context) error {
	before, err := s.podUIDs(ctx)
	if err != nil {
		return err
	}
	if err := s.takeImage(ctx, badImage); err != nil {
		return err
	}
	if err := s.untilRollout(ctx, "the revision has failed", func(r v1alpha1.NodeRolloutStatus) bool {
		return r.Phase == "RollingBack"
	}); err != nil {
		return err
	}
	if err := s.pollUntil(ctx, "its node is gone", func(context.Context) (string, bool, error) {
		n := s.withImage(badImage)
		return fmt.Sprintf("%d nodes of %s live", n, badImage), n == 0, nil
	}); err != nil {
		return err
	}
	ever := 0
	for _, i := range s.Cloud.DescribedInstances() {
		if i.ImageID == badImage {
			ever++
		}
	}
	after, err := s.podUIDs(ctx)
	switch {
	case err != nil:
		return err
	case ever != 1:
		return fmt.Errorf("%d nodes were made with %s, want 1", ever, badImage)
	case before != after:
		return fmt.Errorf("pods were evicted for it: before %s, after %s", before, after)
	}
	fmt.Printf("   1 node was made with %s; the same %d pods run on the same nodes\n", badImage, rolledPods)
	return s.tellRollout(ctx)
}

// goodRollout: the image takes its steps, is trusted, and every node gets it, within the budget of the pods.
func (s rolloutStory) goodRollout(ctx context.Context) error {
	budget, err := s.followBudget(ctx, "web", rolledPods-1)
	if err != nil {
		return err
	}
	defer budget.stop()
	if err := s.takeImage(ctx, goodImage); err != nil {
		return err
	}
	good := ""
	if err := s.untilRollout(ctx, "the revision is the last good one", func(r v1alpha1.NodeRolloutStatus) bool {
		good = r.LastGoodRevision
		return r.Phase == "Healthy" && r.LastGoodRevision != r.PreviousGoodRevision && r.PreviousGoodRevision != ""
	}); err != nil {
		return err
	}
	if err := s.pollUntil(ctx, "every node has it", func(context.Context) (string, bool, error) {
		n, all := s.withImage(goodImage), len(s.liveInstances())
		return fmt.Sprintf("%d of %d nodes", n, all), n == all && n >= rolledPods, nil
	}); err != nil {
		return err
	}
	if err := s.waitRunning(ctx, rolledPods); err != nil {
		return err
	}
	lowest, err := budget.lowestAvailable()
	if err != nil {
		return err
	}
	fmt.Printf("   revision %s; at least %d of %d pods were available at any time\n", good, lowest, rolledPods)
	return s.printNodes(ctx)
}

// takeImage has the class choose the image, as kubectl patch does, and has refresh look.
func (s rolloutStory) takeImage(ctx context.Context, id string) error {
	patch := fmt.Appendf(nil, `{"spec":{"amiSelectorTerms":[{"id":%q}]}}`, id)
	if _, err := s.Kube.Dynamic.Resource(env.NodeClasses()).Patch(ctx, "default", types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err := s.Host.InvokeFunction(ctx, s.FunctionName("refresh"), "Event", nil)
	return err
}

func (s rolloutStory) withImage(id string) (n int) {
	for _, i := range s.liveInstances() {
		if i.ImageID == id {
			n++
		}
	}
	return n
}

// podUIDs are the pods with their nodes.
func (s rolloutStory) podUIDs(ctx context.Context) (string, error) {
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return "", err
	}
	var out []string
	for _, p := range pods.Items {
		out = append(out, string(p.UID)+" on "+p.Spec.NodeName)
	}
	return strings.Join(out, ", "), nil
}

// rolloutStatus is the status of the NodeRollout.
func (s rolloutStory) rolloutStatus(ctx context.Context) (v1alpha1.NodeRolloutStatus, error) {
	var out v1alpha1.NodeRollout
	at := v1alpha1.GroupVersion().WithResource(v1alpha1.NodeRolloutResource)
	o, err := s.Kube.Dynamic.Resource(at).Get(ctx, "canary", metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out)
	}
	return out.Status, err
}

// untilRollout waits until the status of the NodeRollout is so, and prints each message of it.
func (s rolloutStory) untilRollout(ctx context.Context, what string, isSo func(v1alpha1.NodeRolloutStatus) bool) error {
	said := ""
	return s.pollUntil(ctx, what, func(ctx context.Context) (string, bool, error) {
		r, err := s.rolloutStatus(ctx)
		saw := fmt.Sprintf("%s, step %d, %d nodes of the revision, %d others; %s", r.Phase, r.Step+1, r.NewNodes, r.OldNodes, r.Message)
		if err == nil && saw != said && r.Phase != "" {
			said = saw
			fmt.Println("   NodeRollout canary: " + saw)
		}
		return saw, err == nil && isSo(r), err
	})
}

func (s rolloutStory) tellRollout(ctx context.Context) error {
	r, err := s.rolloutStatus(ctx)
	for _, e := range r.Evidence {
		fmt.Println("   evidence: " + e)
	}
	return err
}
