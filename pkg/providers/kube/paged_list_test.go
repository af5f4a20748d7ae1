package kube

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// restOfList is what pages of a list have not shown yet, of the moment of its first page.
type restOfList struct {
	version uint64
	items   []any
}

// itemsOfPage are few, so that lists of a test have several pages.
const itemsOfPage = 2

func (s *apiServer) servePage(k *storedKind, rest restOfList) (*http.Response, error) {
	s.pages++
	n := min(itemsOfPage, len(rest.items))
	meta := map[string]any{"resourceVersion": strconv.FormatUint(rest.version, 10)}
	if n < len(rest.items) {
		token := fmt.Sprint("page-", s.pages)
		s.rest[token] = restOfList{rest.version, rest.items[n:]}
		meta["continue"] = token
	}
	return answer(http.StatusOK, map[string]any{"kind": k.kind + "List", "apiVersion": k.group, "items": rest.items[:n],
		"metadata": meta})
}

func (s *apiServer) countPages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages
}

// podsInParts are more than two invocations of five milliseconds list.
const podsInParts = 30

// A list for which two invocations have no time goes on where each ended. It begins anew when the API server has
// forgotten its moment, and before it may have. Either way the look shows what a list shows.
func TestAListThatIsCutShortGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*history)
		anew      bool
	}{
		"soon":              {func(*history) { time.Sleep(20 * time.Second) }, false},
		"after a change":    {func(h *history) { h.api.put("pods", testPod("n03", 4, "other")) }, false},
		"its moment is old": {func(*history) { time.Sleep(maxListAge) }, true},
		"its moment is forgotten": {func(h *history) {
			h.api.put("pods", testPod("n03", 4, "other"))
			h.api.compact("pods")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, 1)
				for i := range podsInParts {
					h.api.put("pods", testPod(fmt.Sprintf("n%02d", i), i+1, "node"))
				}
				cache := smallCache(h.api.client())
				for range 2 {
					h.cutShort(cache)
				}
				c.meanwhile(h)
				before := h.api.countPages()
				cache.Resume(t.Context())
				defer cache.Freeze()
				shown, err := cache.ReadSnapshot(t.Context())
				h.fail("a look", err)
				if all := podsInParts / itemsOfPage; before < 2 || before >= all {
					t.Errorf("%d pages were read in two invocations, want some of %d", before, all)
				} else if got := h.api.countPages() - before; (got >= all) != c.anew {
					t.Errorf("%d pages were read after %d of %d: begun anew, want %v", got, before, all, c.anew)
				}
				h.compareWithList(t.Context(), shown)
			})
		})
	}
}

// cutShort is an invocation that has time for one or two pages.
func (h *history) cutShort(c *ClusterCache) {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), 5*time.Millisecond)
	defer stop()
	c.Resume(ctx)
	defer c.Freeze()
	if err := c.prove(ctx, c.kinds[:1], func(*followedKind) time.Time { return c.resumed }); err == nil {
		h.t.Error("an invocation without time is not cut short")
	}
}
