package kube

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// cacheServer is an API server with one lease.
type cacheServer struct {
	*apiServer

	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

func (s *cacheServer) client(t *testing.T) *Client {
	c, err := New(Config{Endpoint: "http://api.invalid", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *cacheServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/leases") {
		return s.apiServer.RoundTrip(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		if s.lease == nil {
			return answer(http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound))
		}
		return answer(http.StatusOK, s.lease)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	sent := o.(*coordinationv1.Lease)
	if s.lease != nil && sent.ResourceVersion != s.lease.ResourceVersion {
		return answer(http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonConflict))
	}
	s.version++
	sent.ResourceVersion = strconv.Itoa(s.version)
	s.lease = sent
	return answer(http.StatusOK, sent)
}

// A lease that somebody else held since it was ours has the next look show what they wrote, although it was proven a
// moment before; one that nobody else held does not.
func TestALeaseThatOthersHeldNeedsANewLook(t *testing.T) {
	for _, held := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, 1)
			h.putFiveOfEach()
			server := &cacheServer{apiServer: h.api}
			c, other := smallCache(server.client(t)), server.client(t)
			c.Resume(t.Context())
			take := func(of interface {
				Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error, bool, error)
			}, holder string) {
				release, ok, err := of.Acquire(t.Context(), "capacity", holder, time.Minute)
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				h.fail("a release", release(t.Context()))
			}
			take(c, "this")
			_, err := c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			c.Freeze()
			c.Resume(t.Context())
			_, err = c.PendingPods(t.Context())
			h.fail("a look at pods", err)
			h.api.mu.Lock()
			h.api.late = 20 * time.Second
			h.api.mu.Unlock()
			time.Sleep(2 * time.Second)
			if held {
				take(other, "other")
			}
			h.api.put("nodeclaims", testClaim("others", 10, "ami"))
			take(c, "this")
			s, err := c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			if held && len(s.Claims) != 6 {
				t.Errorf("%d claims after a lease that another held, want 6", len(s.Claims))
			}
			c.Freeze()
		})
	}
}
