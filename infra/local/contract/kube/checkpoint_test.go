package kube_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/archive"
	"joiner.sh/pkg/providers/kube"
)

// checkpoints are those of an emulated bucket, and what a process was told of them.
func checkpoints(t *testing.T) (use func(*kube.ClusterCache), told func() string) {
	t.Helper()
	cloud, url := cloudtest.Start(t, awsemulator.Options{})
	if err := cloud.PutBucket("catalog"); err != nil {
		t.Fatal(err)
	}
	keys := cloud.IssueCredentials("admin", "test", 0)
	store := archive.CheckpointStore{Bucket: "catalog", S3: s3.NewFromConfig(aws.Config{Region: "us-west-2", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })},
		func(o *s3.Options) { o.UsePathStyle = true })}
	var lines []string
	return func(m *kube.ClusterCache) {
			m.Checkpoints.Use(kube.CheckpointOptions{Store: store, Of: "demo", Tell: func(what string, fields ...any) {
				lines = append(lines, fmt.Sprint(what, " ", fields))
			}})
		}, func() string {
			out := strings.Join(lines, "\n")
			lines = nil
			return out
		}
}

// manyPods are more pods than are listed to prove something, which nobody schedules.
func (c env) manyPods(t *testing.T) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range 1010 {
		g.Go(func() error {
			c.addPod(t, fmt.Sprintf("web-%d", i), "", func(p *corev1.Pod) { p.Spec.SchedulerName = "nobody" })
			return nil
		})
	}
	_ = g.Wait()
}

// manyClaims are more claims than are listed to prove something.
func (c env) manyClaims(t *testing.T, k *kube.Client) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for range 160 {
		g.Go(func() error { c.addClaim(t, k); return nil })
	}
	_ = g.Wait()
}

// A process that starts reads what another one stored, and lists nothing of it: watches tell it what happened since. A
// kind whose version the API server has forgotten is listed, as claims are whose definition is younger. A bookmark that
// comes too late on a busy machine is replaced by a list: one of three times is enough to show that none is needed.
func TestColdStartFromACheckpoint(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	c.manyNodes(t)
	c.manyPods(t)
	use, told := checkpoints(t)
	first, _ := c.client(t)
	c.manyClaims(t, first)
	m := first.NewClusterCache()
	use(m)
	m.Resume(t.Context())
	snapshotOf(t, m)
	m.Freeze()
	must(t, m.Checkpoints.Write(t.Context()))
	if got := told(); !strings.Contains(got, "there is no checkpoint") {
		t.Errorf("the first process was told %q", got)
	}
	old := &oldWatches{}
	started := 0
	// coldStart has a new process look, and returns its lists of pods, nodes and claims.
	coldStart := func() []string {
		t.Helper()
		started++
		name := fmt.Sprint("late-", started)
		c.addPod(t, name, "", func(p *corev1.Pod) { p.Spec.SchedulerName = "nobody" })
		c.addNode(t, c.name+name)
		must(t, c.CoreV1().Nodes().Delete(t.Context(), fmt.Sprintf("%s-%d", c.name, started), metav1.DeleteOptions{}))
		r := &recorder{}
		k, _ := c.clientWith(t, func(config *kube.Config) {
			config.Wrap = func(next http.RoundTripper) http.RoundTripper { old.next, r.next = next, old; return r }
		})
		cold := k.NewClusterCache()
		use(cold)
		cold.Resume(t.Context())
		defer cold.Freeze()
		s := snapshotOf(t, cold)
		if got := nodesOf(s, c.name); !got[name] || got[fmt.Sprint("-", started)] {
			t.Errorf("a node that came is shown %t, one that went %t", got[name], got[fmt.Sprint("-", started)])
		}
		mine := 0
		for _, p := range s.Pods {
			if p.Namespace == c.name {
				mine++
			}
		}
		if !slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool { return p.Name == name }) || mine != 1010+started {
			t.Errorf("%d pods are shown, want %d", mine, 1010+started)
		}
		lists := looked(r.take())
		what := told()
		t.Log(lists, what)
		if !strings.Contains(what, "was read") {
			t.Errorf("a new process was told %q", what)
		}
		return lists
	}
	quick := false
	for range 3 {
		if quick = len(coldStart()) == 0; quick {
			break
		}
	}
	if !quick {
		t.Error("each cold start lists, want none to")
	}
	old.on.Store(true)
	if lists := coldStart(); !slices.Contains(lists, "/apis/karpenter.sh/v1/nodeclaims") {
		t.Errorf("with a version of claims that is forgotten it lists %v", lists)
	}
}

var measureAges = flag.Duration("checkpoint-ages", 0, "measure for so long how old a version may be at which a watch begins")

// TestHowOldACheckpointMayBe prints how old the oldest version is at which the API server begins a watch, while nodes
// and pods change as in a cluster of 5,000 nodes: each node's status every five minutes, and 1 % of 150,000 pods a minute
// with four writes each.
func TestHowOldACheckpointMayBe(t *testing.T) {
	if *measureAges == 0 {
		t.Skip("only with -checkpoint-ages 5m")
	}
	c := newEnv(t)
	c.addNode(t, c.name)
	c.addPod(t, "busy", "", func(p *corev1.Pod) { p.Spec.SchedulerName = "nobody" })
	ctx, cancel := context.WithTimeout(t.Context(), *measureAges)
	defer cancel()
	end, _ := ctx.Deadline()
	var g errgroup.Group
	every := func(pause time.Duration, do func(n int) error) {
		g.Go(func() error {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-tick.C:
					// a call that has to wait beyond the end fails before it
					if err := do(n); err != nil && time.Until(end) > time.Second {
						return err
					}
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	patch := func(n int) []byte {
		return fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, n)
	}
	every(time.Second/17, func(n int) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, c.name, types.MergePatchType, patch(n), metav1.PatchOptions{})
		return err
	})
	every(time.Second/100, func(n int) error {
		_, err := c.CoreV1().Pods(c.name).Patch(ctx, "busy", types.MergePatchType, patch(n), metav1.PatchOptions{})
		return err
	})
	type seen struct {
		at      time.Time
		version string
	}
	var all []seen
	every(5*time.Second, func(int) error {
		l, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			all = append(all, seen{time.Now(), l.ResourceVersion})
		}
		return err
	})
	must(t, g.Wait())
	second := int64(1)
	for kind, begin := range map[string]func(metav1.ListOptions) (watch.Interface, error){
		"nodes": func(o metav1.ListOptions) (watch.Interface, error) { return c.CoreV1().Nodes().Watch(t.Context(), o) },
		"pods":  func(o metav1.ListOptions) (watch.Interface, error) { return c.CoreV1().Pods("").Watch(t.Context(), o) },
	} {
		for _, s := range all {
			w, err := begin(metav1.ListOptions{ResourceVersion: s.version, TimeoutSeconds: &second})
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				continue
			}
			must(t, err)
			e := <-w.ResultChan()
			w.Stop()
			if e.Type == watch.Error {
				continue
			}
			t.Logf("%s: a watch begins at a version of %s ago, of %s", kind, time.Since(s.at).Round(time.Second), time.Since(all[0].at).Round(time.Second))
			break
		}
	}
}
