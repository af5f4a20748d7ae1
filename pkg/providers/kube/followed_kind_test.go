package kube

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// One watch of each kind tells what came while the cache was frozen, and proves that it is all.
func TestOneWatchProvesAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		for i := range 5 {
			h.api.put("pods", testPod(fmt.Sprint("n", i), i+1, "node"))
			h.api.put("nodes", testNode(fmt.Sprint("n", i), i+1, "zone"))
			h.api.put("nodeclaims", testClaim(fmt.Sprint("n", i), i+1, "ami"))
		}
		c := h.api.client()
		m := smallCache(c)
		m.Resume(t.Context())
		h.checkProven(t.Context(), process{c, m})
		m.Freeze()
		for round := range 5 {
			h.api.put("pods", testPod(fmt.Sprint("later", round), 10+round, "node"))
			h.api.mu.Lock()
			clear(h.api.watches)
			clear(h.api.lists)
			h.api.mu.Unlock()
			m.Resume(t.Context())
			_, err := m.CachedSnapshot(t.Context())
			h.fail("a look", err)
			m.Freeze()
			h.api.mu.Lock()
			for _, kind := range []string{"pods", "nodes", "nodeclaims"} {
				if h.api.watches[kind] != 1 || h.api.lists[kind] != 0 {
					t.Errorf("%d watches and %d lists of %s, want one watch", h.api.watches[kind], h.api.lists[kind], kind)
				}
			}
			h.api.mu.Unlock()
		}
	})
}
