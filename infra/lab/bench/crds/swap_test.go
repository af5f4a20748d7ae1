package crds

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/install"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// swap stands before an API server. A CRD that is written through it becomes Joiner's of the same name.
type swap struct {
	ours  map[string]*unstructured.Unstructured
	proxy http.Handler

	mu    sync.Mutex
	taken map[string]bool // CRDs of Joiner that somebody wrote
}

// startSwap serves plain HTTP on loopback until the test ends, with the rights of the configuration.
func startSwap(t *testing.T, c *rest.Config) (s *swap, address string) {
	server, err := url.Parse(c.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	s = &swap{ours: map[string]*unstructured.Unstructured{}, taken: map[string]bool{}}
	for _, read := range []func() ([]*unstructured.Unstructured, error){install.CRDs, install.Borrowed} {
		all, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range all {
			s.ours[crd.GetName()] = crd
		}
	}
	s.proxy = &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, web.URL
}

func (s *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, crdPath) && (r.Method == http.MethodPost || r.Method == http.MethodPut) {
		if err := s.exchange(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	s.proxy.ServeHTTP(w, r)
}

// exchange puts Joiner's CRD into a request that writes one. The version of the object that is overwritten stays.
func (s *swap) exchange(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var theirs unstructured.Unstructured
	if err := json.Unmarshal(body, &theirs.Object); err != nil {
		return err
	}
	if ours := s.ours[theirs.GetName()]; ours != nil {
		ours = ours.DeepCopy()
		ours.SetResourceVersion(theirs.GetResourceVersion())
		if body, err = json.Marshal(ours.Object); err != nil {
			return err
		}
		s.mu.Lock()
		s.taken[ours.GetName()] = true
		s.mu.Unlock()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
