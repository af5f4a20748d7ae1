package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/compact"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclass/translate"
)

// checkpointFile is a store that remembers all that was written to it.
type checkpointFile struct {
	all   [][]byte
	shown []byte // what is read, in place of the last one
	err   error
	reads int
	told  []string
}

func (f *checkpointFile) ReadCheckpoint(_ context.Context, most int64) ([]byte, error) {
	f.reads++
	if int64(len(f.shown)) > most {
		return nil, fmt.Errorf("at most %d bytes are read", most)
	}
	if f.shown == nil && len(f.all) > 0 {
		return f.all[len(f.all)-1], f.err
	}
	return f.shown, f.err
}

func (f *checkpointFile) WriteCheckpoint(_ context.Context, b []byte) error {
	f.all = append(f.all, b)
	return f.err
}

func (f *checkpointFile) tell(what string, fields ...any) {
	f.told = append(f.told, what+" "+fmt.Sprint(fields...))
}

// process is a new process with a small cache that begins with a checkpoint.
func (f *checkpointFile) process(c *Client) process {
	cache := smallCache(c)
	cache.Checkpoints.Use(CheckpointOptions{Store: f, Of: "one", Tell: f.tell})
	return process{c, cache}
}

// knownCluster is an API server with some of everything, and a checkpoint of it.
func knownCluster(t *testing.T) (*history, *checkpointFile) {
	t.Helper()
	h, f := newHistory(t, 1), &checkpointFile{}
	for i := range 5 {
		h.api.put("pods", testPod(fmt.Sprint("web-", i), i+1, "node"))
		h.api.put("nodes", testNode(fmt.Sprint("n", i), i+1, "zone"))
		h.api.put("nodeclaims", testClaim(fmt.Sprint("c", i), i+1, "ami"))
	}
	p := f.process(h.api.client())
	p.cache.Resume(t.Context())
	h.checkProven(t.Context(), p)
	p.cache.Freeze()
	h.fail("a checkpoint", p.cache.Checkpoints.Write(t.Context()))
	if len(f.all) != 1 {
		t.Fatalf("%d checkpoints were written, want one", len(f.all))
	}
	f.told = nil
	return h, f
}

// coldStart has a new process look, after something changed, and returns the lists that it made.
func (h *history) coldStart(f *checkpointFile) string {
	h.t.Helper()
	h.api.put("pods", testPod("late-1", 100, "node"))
	h.api.mu.Lock()
	before := maps.Clone(h.api.lists)
	h.api.mu.Unlock()
	p := f.process(h.api.client())
	p.cache.Resume(h.t.Context())
	s, err := p.cache.ReadSnapshot(h.t.Context())
	h.fail("a look", err)
	if !slices.ContainsFunc(s.Pods, func(pod cluster.Pod) bool { return pod.Name == "late-1" }) {
		h.t.Error("a pod that came after the checkpoint is not shown")
	}
	h.api.mu.Lock()
	var lists []string
	for _, plural := range []string{"pods", "nodes", "nodeclaims"} {
		if h.api.lists[plural] > before[plural] {
			lists = append(lists, plural)
		}
	}
	h.api.mu.Unlock()
	h.checkProven(h.t.Context(), p)
	p.cache.Freeze()
	return strings.Join(lists, " ")
}

func resealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), sum[:]...)
}

// A process that starts lists nothing that a checkpoint holds, unless the API server has forgotten its version or the
// checkpoint must not be believed. It says which, once.
func TestAColdStart(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*history, *checkpointFile)
		lists   string
		told    string
	}{
		"with a checkpoint": {func(*history, *checkpointFile) {}, "", "was read"},
		"after pods were compacted": {func(h *history, _ *checkpointFile) {
			h.api.put("pods", testPod("other-1", 90, "node"))
			h.api.compact("pods")
		}, "pods", "was read"},
		"without one":  {func(_ *history, f *checkpointFile) { f.all = nil }, "pods nodes nodeclaims", "there is no checkpoint"},
		"with failing": {func(_ *history, f *checkpointFile) { f.err = errors.New("slow down") }, "pods nodes nodeclaims", "slow down"},
		"with a damaged one": {func(_ *history, f *checkpointFile) {
			f.shown = slices.Clone(f.all[0])
			f.shown[len(f.shown)/2] ^= 1
		}, "pods nodes nodeclaims", "checksum"},
		"with half of one": {func(_ *history, f *checkpointFile) { f.shown = f.all[0][:len(f.all[0])/2] }, "pods nodes nodeclaims", "checksum"},
		"with a shorter one of its checksum": {func(_ *history, f *checkpointFile) {
			f.shown = resealed(f.all[0][:len(f.all[0])-sha256.Size-1])
		}, "pods nodes nodeclaims", "end too early"},
		"with a longer one of its checksum": {func(_ *history, f *checkpointFile) {
			f.shown = resealed(append(slices.Clone(f.all[0][:len(f.all[0])-sha256.Size]), 0))
		}, "pods nodes nodeclaims", "longer than"},
		"with one of another cluster": {func(_ *history, f *checkpointFile) {
			c := &checkpoint{written: time.Now(), versions: [kindCount]uint64{101, 101, 101}}
			f.shown = c.encode("two")
		}, "pods nodes nodeclaims", `of "two"`},
		"with one of another format": {func(_ *history, f *checkpointFile) {
			var w compact.Writer
			compact.WriteValue(&w, &checkpointHead{Format: "joiner checkpoint 0", Of: "one", Types: checkpointTypes(), Written: time.Now()})
			f.shown = resealed(w.Bytes())
		}, "pods nodes nodeclaims", "another version"},
		"with one of other types": {func(_ *history, f *checkpointFile) {
			var w compact.Writer
			compact.WriteValue(&w, &checkpointHead{Format: checkpointFormat, Of: "one", Types: "others", Written: time.Now()})
			f.shown = resealed(w.Bytes())
		}, "pods nodes nodeclaims", "another version"},
		"with an old one": {func(*history, *checkpointFile) { time.Sleep(31 * time.Minute) }, "pods nodes nodeclaims", "31m"},
		"with one of the future": {func(_ *history, f *checkpointFile) {
			c := &checkpoint{written: time.Now().Add(time.Hour), versions: [kindCount]uint64{101, 101, 101}}
			f.shown = c.encode("one")
		}, "pods nodes nodeclaims", "-1h"},
		"with a huge one": {func(_ *history, f *checkpointFile) { f.shown = make([]byte, maxCheckpoint+1) }, "pods nodes nodeclaims", "bytes are read"},
		"with more than five nodes take": {func(_ *history, f *checkpointFile) {
			f.shown = make([]byte, 5*24<<10+1)
		}, "pods nodes nodeclaims", "at most 122880 bytes are read"},
		"in a small cluster": {func(h *history, f *checkpointFile) {
			for i := range 3 {
				h.api.remove("nodes", fmt.Sprint("n", i))
			}
		}, "pods nodes nodeclaims", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, f := knownCluster(t)
				c.happens(h, f)
				if lists := h.coldStart(f); lists != c.lists {
					t.Errorf("it lists %q, want %q", lists, c.lists)
				}
				want := 1
				if c.told == "" {
					want = 0
				}
				if len(f.told) != want || f.reads != 1+want || want == 1 && !strings.Contains(f.told[0], c.told) {
					t.Errorf("%d reads, told %q, want %q", f.reads-1, f.told, c.told)
				}
			})
		})
	}
}

// Checkpoints are written when something was told, and not too often.
func TestWhenACheckpointIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := knownCluster(t)
		f.err = errors.New("slow down") // who begins with one writes none until it has listed
		p := f.process(h.api.client())
		p.cache.Resume(t.Context())
		h.checkProven(t.Context(), p)
		p.cache.Freeze()
		f.err = nil
		for _, step := range []struct {
			name    string
			after   time.Duration
			happens func()
			written int
		}{
			{"at the first end", 0, nil, 1},
			{"at once", time.Second, func() { h.api.put("pods", testPod("a-1", 50, "node")) }, 0},
			{"a minute later, with news of before", time.Minute, nil, 1},
			{"a minute later, without news", time.Minute, nil, 0},
			{"a minute later, with news", time.Minute, func() { h.api.put("nodes", testNode("n0", 1, "other")) }, 1},
			{"after ten minutes without news", 11 * time.Minute, nil, 1},
			{"in a cluster that has become small", time.Minute, func() {
				for i := range 3 {
					h.api.remove("nodes", fmt.Sprint("n", i))
				}
			}, 0},
		} {
			time.Sleep(step.after)
			if step.happens != nil {
				step.happens()
			}
			before := len(f.all)
			p.cache.Resume(t.Context())
			h.checkProven(t.Context(), p)
			p.cache.Freeze()
			h.fail(step.name, p.cache.Checkpoints.Write(t.Context()))
			if got := len(f.all) - before; got != step.written {
				t.Errorf("%s: %d are written, want %d", step.name, got, step.written)
			}
		}
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), checkpointTakes)
		defer cancel()
		before := len(f.all)
		if err := p.cache.Checkpoints.Write(ctx); err != nil || len(f.all) != before {
			t.Errorf("one is written in an invocation without time, error %v", err)
		}
	})
}

// Processes are lost and begin anew with a checkpoint that may be old, damaged or of the other: a proven look shows what
// a list shows, and a look shows what the process wrote.
func TestRestoredCacheAgreesWithAList(t *testing.T) {
	for n := range histories.N() {
		seed := *firstHistory + uint64(n)
		synctest.Test(t, func(t *testing.T) {
			h, f := newHistory(t, seed), &checkpointFile{}
			defer func() {
				if t.Failed() {
					t.Logf("history %d: go test -run TestRestoredCacheAgreesWithAList -args -histories 1 -first-history %d", seed, seed)
				}
			}()
			for range 20 {
				h.change()
			}
			processes := []process{f.process(h.api.client()), f.process(h.api.client())}
			for range 8 {
				i := h.rng.IntN(2)
				if h.rng.IntN(2) == 0 {
					processes[i] = f.process(h.api.client())
				}
				f.shown = nil
				if len(f.all) > 0 && h.rng.IntN(3) == 0 {
					f.shown = slices.Clone(f.all[h.rng.IntN(len(f.all))])
					if h.rng.IntN(4) == 0 {
						f.shown[h.rng.IntN(len(f.shown))] ^= 4
					}
				}
				h.invocation(processes[i])
				h.fail("a checkpoint", processes[i].cache.Checkpoints.Write(t.Context()))
				time.Sleep(time.Duration(h.rng.IntN(100)) * time.Second)
				for range h.rng.IntN(8) { // while both are frozen
					h.change()
				}
			}
		})
	}
}

// everyKindOfPod are pods of which each has something that others have not.
func everyKindOfPod() []*corev1.Pod {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	out := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "odd"}}}
	for i := range 4 {
		out = append(out, runningPod(i))
	}
	out[2].Labels = map[string]string{"own": "label"}
	out[3].DeletionTimestamp, out[3].Status.StartTime = &at, &at
	out[4].Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	out[4].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "x", Operator: "In", Values: []string{"y"}}}}}}}}
	return out
}

func sampleCheckpoint(t testing.TB) *checkpoint {
	t.Helper()
	var shapes translate.PodShapes
	var pods []*translate.ListedPod
	for _, p := range everyKindOfPod() {
		pods = append(pods, shapes.ListPod(p))
	}
	r, err := requirements.NewRequirement("zone", requirements.In, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	grace := time.Minute
	return &checkpoint{written: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), versions: [kindCount]uint64{1, 2, 3},
		took: [kindCount]time.Duration{time.Second, 0, 2}, pods: translate.SortPods(slices.Values(pods)),
		nodes: map[string]cluster.Node{"u": {Name: "n", UID: "u", Labels: map[string]string{"zone": "a"}, Taints: []cluster.Taint{{Key: "k"}},
			Conditions: []cluster.Condition{{Type: "Ready", Status: "True"}}}},
		digests: map[string]uint64{"n": 7},
		claims: map[string]cluster.Claim{"c": {Name: "c", UID: "c", Version: "9", Requirements: requirements.NewSet(r), TerminationGrace: &grace,
			ExpireAfter: time.Hour}}}
}

func TestACheckpointIsReadAsItWasWritten(t *testing.T) {
	want := sampleCheckpoint(t)
	var shapes translate.PodShapes
	got, err := decodeCheckpoint(want.encode("one"), "one", want.written.Add(time.Minute), &shapes)
	if err != nil {
		t.Fatal(err)
	}
	pods := func(c *checkpoint) (out []cluster.Pod) {
		for p := range c.pods.All() {
			out = append(out, p.Pod())
		}
		return out
	}
	if diff := cmp.Diff(pods(want), pods(got)); diff != "" || len(pods(got)) != 5 {
		t.Errorf("pods (-written +read):\n%s", diff)
	}
	rest := func(c *checkpoint) []any {
		return []any{c.written, c.versions, c.took, c.nodes, c.claims, c.digests}
	}
	if diff := cmp.Diff(rest(want), rest(got), cmp.AllowUnexported(requirements.Set{})); diff != "" {
		t.Errorf("the rest (-written +read):\n%s", diff)
	}
	// One that is listed later shares what it has in common with one that was read.
	listed := shapes.ListPod(everyKindOfPod()[1])
	for p := range got.pods.All() {
		if p.UID == listed.UID && p.Shape != listed.Shape {
			t.Error("a replica does not share the shape that was read")
		}
	}
}

// Whatever the bytes of a checkpoint are, it is read or refused.
func FuzzDecodeCheckpoint(f *testing.F) {
	c := sampleCheckpoint(f)
	b := c.encode("one")
	f.Add(b[:len(b)-sha256.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeBody(body, "one", c.written, &translate.PodShapes{})
		if err != nil {
			return
		}
		for p := range got.pods.All() {
			_ = p.Pod()
		}
		again, err := decodeCheckpoint(got.encode("one"), "one", c.written, &translate.PodShapes{})
		if err != nil || again.pods.Len() != got.pods.Len() || len(again.nodes) != len(got.nodes) {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}

// A checkpoint replaces nothing that is known or being listed, and brings back no version that the API server has
// forgotten.
func TestACheckpointReplacesNothingThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := knownCluster(t)
		c, err := decodeCheckpoint(f.all[0], "one", time.Now(), &translate.PodShapes{})
		h.fail("a checkpoint", err)
		p := f.process(h.api.client())
		p.cache.Resume(t.Context())
		h.checkProven(t.Context(), p)
		if got := p.cache.Checkpoints.adopt(c); got != nil {
			t.Errorf("%v are replaced", got)
		}
		p.cache.Freeze()
		cache := smallCache(h.api.client())
		cache.kinds[0].gone = c.versions[0]
		cache.kinds[1].one <- struct{}{}
		if got := cache.Checkpoints.adopt(c); !slices.Equal(got, []string{"nodeclaims"}) {
			t.Errorf("%v are taken over, want the claims alone", got)
		}
	})
}
