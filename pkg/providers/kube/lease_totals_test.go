package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"joiner.sh/pkg/model/timeseries"
)

// leaseServer is an API server with one lease.
type leaseServer struct {
	t       *testing.T
	lease   *coordinationv1.Lease // nil for none
	version int
	writes  int
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int, why metav1.StatusReason) {
		w.WriteHeader(code)
		s.encode(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: why, Code: int32(code)})
	}
	if s.lease == nil && r.Method != http.MethodPost {
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			s.t.Error(err)
			return
		}
		written := o.(*coordinationv1.Lease)
		if s.lease != nil && written.ResourceVersion != s.lease.ResourceVersion {
			refuse(http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		s.lease = written
		s.touch()
		s.writes++
	}
	s.encode(w, s.lease)
}

func (s *leaseServer) encode(w io.Writer, body any) {
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.t.Error(err)
	}
}

func (s *leaseServer) touch() {
	s.version++
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	s.lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
}

// TestTotalsTravelOnTheLease: what holders count adds up across processes, costs no request of its own, and is made once
// when somebody changed the lease meanwhile.
func TestTotalsTravelOnTheLease(t *testing.T) {
	s := &leaseServer{t: t}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	process := func() *Client {
		c, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pass := func(c *Client, between func()) {
		t.Helper()
		release, ok, err := c.Acquire(t.Context(), "capacity", "me", time.Minute)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		c.ChangeTotals("capacity", func(t timeseries.Totals) { t.Count("karpenter_pods_drained_total", 1) })
		between()
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want float64) {
		t.Helper()
		totals, err := process().ReadTotals(t.Context(), "capacity")
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		for _, one := range totals.List(time.Time{}) {
			got = one.Value
		}
		if got != want {
			t.Errorf("counted %v, want %v", got, want)
		}
	}
	expect(0)
	a, b := process(), process()
	nothing := func() {}
	pass(a, nothing)
	pass(a, nothing)
	expect(2)
	pass(b, func() { s.touch() }) // somebody changed it
	expect(3)
	if s.writes != 6 {
		t.Errorf("%d writes for three passes, want two each", s.writes)
	}
	pass(a, func() { s.lease.Annotations["joiner.sh/totals"] = "broken"; s.touch() })
	expect(1) // as a counter that was reset
	pass(a, nothing)
	pass(b, nothing)
	expect(3)
	pass(a, func() { other := "other"; s.lease.Spec.HolderIdentity = &other; s.touch() }) // taken by another
	expect(3)
	s.lease.Spec.HolderIdentity = nil
	s.touch()
	pass(a, nothing)
	expect(5)
}
