package kube

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// No watch tells of a pod that a forged checkpoint leaves out. The process that began with it lists within the half hour,
// and hands on nothing of it before.
func TestAForgedCheckpointIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := knownCluster(t)
		c, err := decodeCheckpoint(f.all[0], "one", time.Now(), &translate.PodShapes{})
		h.fail("a checkpoint", err)
		all := podsByUID(c.pods.All())
		maps.DeleteFunc(all, func(_ string, p *translate.ListedPod) bool { return p.Pod().Name == "web-0" })
		c.pods = translate.SortPods(maps.Values(all))
		f.shown = c.encode("one")
		p, began := f.process(h.api.client()), time.Now()
		var found, written time.Duration
		for range 25 {
			p.cache.Resume(t.Context())
			h.api.put("pods", testPod("news-1", 100+int(time.Since(began).Seconds()), "node"))
			s, err := p.cache.ReadSnapshot(t.Context())
			h.fail("a look", err)
			if found == 0 && slices.ContainsFunc(s.Pods, func(pod cluster.Pod) bool { return pod.Name == "web-0" }) {
				found = time.Since(began).Truncate(time.Minute)
			}
			p.cache.Freeze()
			h.fail("a checkpoint", p.cache.Checkpoints.Write(t.Context()))
			if written == 0 && len(f.all) > 1 {
				written = time.Since(began).Truncate(time.Minute)
			}
			time.Sleep(time.Minute)
		}
		if found != 20*time.Minute || written != 20*time.Minute {
			t.Errorf("the pod is found after %s, and a checkpoint written after %s, want 20m each", found, written)
		}
	})
}
