package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"joiner.sh/pkg/model/cluster"
)

// failingLists has every list of a kind answer 403, which nobody asks again about, as long as it is set.
type failingLists struct {
	*apiServer
	plural string
}

func (f *failingLists) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	list := r.Method == http.MethodGet && q.Get("watch") == "" && q.Get("limit") != "1"
	if f.plural != "" && list && strings.HasSuffix(r.URL.Path, "/"+f.plural) {
		return answer(http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden))
	}
	return f.apiServer.RoundTrip(r)
}

// A look whose list fails while watches are deaf makes the next one no older: it shows what this process wrote before.
func TestAFailedListForgetsNoOwnWrite(t *testing.T) {
	claimIn := func(claims []cluster.Claim, err error) (string, error) {
		for _, c := range claims {
			if c.Name == "n0" {
				return fmt.Sprint(c.Annotations["x"]), err
			}
		}
		return "no claim", err
	}
	annotate := func(t *testing.T, c *Client) error { _, err := c.patchAny(t.Context(), "n0", "written"); return err }
	for name, test := range map[string]struct {
		plural string
		write  func(*testing.T, *Client) error
		look   func(context.Context, *ClusterCache) (string, error)
		want   string
	}{
		"claims of a snapshot": {"nodeclaims", annotate, func(ctx context.Context, c *ClusterCache) (string, error) {
			s, err := c.CachedSnapshot(ctx)
			return claimIn(s.Claims, err)
		}, "written"},
		"listed claims": {"nodeclaims", annotate, func(ctx context.Context, c *ClusterCache) (string, error) {
			return claimIn(c.ListClaims(ctx))
		}, "written"},
		"pods that wait": {"pods", func(t *testing.T, c *Client) error {
			return c.DeletePod(t.Context(), cluster.Pod{Namespace: "default", Name: "waits", UID: "pod-9"}, 0)
		}, func(ctx context.Context, c *ClusterCache) (string, error) {
			waiting, err := c.PendingPods(ctx)
			return fmt.Sprint(len(waiting), " pods"), err
		}, "0 pods"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, 1)
				h.putFiveOfEach()
				h.putWaitingPod()
				h.api.deaf = true
				server := &failingLists{apiServer: h.api}
				c, err := New(Config{Endpoint: "http://api.invalid", Transport: server})
				h.fail("a client", err)
				cache := smallCache(c)
				cache.Resume(t.Context())
				defer cache.Freeze()
				_, err = cache.CachedSnapshot(t.Context())
				h.fail("a look", err)
				h.fail("a write", test.write(t, c))
				server.plural = test.plural
				if _, err := cache.CachedSnapshot(t.Context()); err == nil {
					t.Errorf("%s: a look whose list fails is no error", name)
				}
				server.plural = ""
				if got, err := test.look(t.Context(), cache); got != test.want || err != nil {
					t.Errorf("%s: after a list that failed %q is shown, want %q; error %v", name, got, test.want, err)
				}
			})
		})
	}
}

// firstPages refuses every later page of a list of nodes, as long as it is set.
type firstPages struct {
	*apiServer
	set bool
}

func (f *firstPages) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.set && r.URL.Query().Get("continue") != "" && strings.HasSuffix(r.URL.Path, "/nodes") {
		return answer(http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden))
	}
	return f.apiServer.RoundTrip(r)
}

// Nodes of which only the first page can be read are an error and no nodes, and what was known of them stays known.
func TestHalfAListOfNodesIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.putFiveOfEach()
		server := &firstPages{apiServer: h.api}
		c, err := New(Config{Endpoint: "http://api.invalid", Transport: server})
		h.fail("a client", err)
		_, err = c.ListNodes(t.Context())
		h.fail("a list", err)
		known := c.seen.nodesVersionRead()
		server.set = true
		if nodes, err := c.ListNodes(t.Context()); err == nil || len(nodes) > 0 || c.seen.nodesVersionRead() != known {
			t.Errorf("%d nodes, error %v; known of version %q, want %q", len(nodes), err, c.seen.nodesVersionRead(), known)
		}
		cache := smallCache(c)
		cache.Resume(t.Context())
		defer cache.Freeze()
		if s, err := cache.ReadSnapshot(t.Context()); err == nil {
			t.Errorf("a snapshot of %d nodes and no error", len(s.Nodes))
		}
	})
}

// deleteOptions reads them as JSON, or as protobuf, in which clients write about core objects.
func deleteOptions(from io.Reader) (out metav1.DeleteOptions, err error) {
	body, err := io.ReadAll(from)
	if err != nil {
		return out, err
	}
	if body, isProto := bytes.CutPrefix(body, []byte("k8s\x00")); isProto {
		var whole runtime.Unknown
		if err := whole.Unmarshal(body); err != nil {
			return out, err
		}
		return out, out.Unmarshal(whole.Raw)
	}
	return out, json.Unmarshal(body, &out)
}
