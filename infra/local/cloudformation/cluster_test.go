package cloudformation_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"

	"joiner.sh/infra/local/loopback"
)

// apiServer keeps objects by the path under which they are served. It knows callers by their tokens, as EKS does, and
// leaves undone what a controller would have to do.
type apiServer struct {
	server *httptest.Server
	ca     []byte                      // PEM
	review string                      // URL that says whose a token is
	reach  func(principal string) bool // whether there is a way from the caller's network

	mu      sync.Mutex
	version int
	objects map[string]map[string]any
}

func newAPIServer(t *testing.T, review string, reach func(string) bool) *apiServer {
	t.Helper()
	s := &apiServer{review: review, reach: reach, objects: map[string]map[string]any{}}
	certificate, ca, err := loopback.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	s.ca = ca
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

// serve answers one request.
func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	user, err := s.caller(r)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	if !user.Authenticated {
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if arn := user.User.Extra["canonicalArn"]; len(arn) == 1 && !s.reach(arn[0]) {
		hangUp(w)
		return
	}
	kubelet := strings.HasPrefix(user.User.Username, "system:node:") && strings.HasPrefix(r.URL.Path, nodes) &&
		strings.HasSuffix(r.URL.Path, "/status")
	if !slices.Contains(user.User.Groups, "system:masters") && !kubelet {
		refuse(w, http.StatusForbidden, user.User.Username+" may not do that")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer(w, r, body)
}

func (s *apiServer) caller(r *http.Request) (authentication.TokenReviewStatus, error) {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer ")
	ask, err := json.Marshal(authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}})
	if err != nil {
		return authentication.TokenReviewStatus{}, err
	}
	res, err := http.Post(s.review, "application/json", bytes.NewReader(ask))
	if err != nil {
		return authentication.TokenReviewStatus{}, err
	}
	defer res.Body.Close()
	var out authentication.TokenReview
	err = json.NewDecoder(res.Body).Decode(&out)
	return out.Status, err
}

func (s *apiServer) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	path := strings.TrimSuffix(r.URL.Path, "/status")
	kinds := []string{"nodes", "nodeclaims", "ec2nodeclasses", "nodepools", "nodeoverlays", "customresourcedefinitions"}
	switch last := path[strings.LastIndex(path, "/")+1:]; {
	case r.Method == http.MethodGet && slices.Contains(kinds, last):
		items := []any{}
		for _, at := range s.below(path) {
			items = append(items, s.objects[at])
		}
		respond(w, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
		return
	case r.Method == http.MethodPatch && strings.Contains(r.Header.Get("Content-Type"), "apply"):
		s.put(path, decoded(body))
	case s.objects[path] == nil:
		refuse(w, http.StatusNotFound, path+" not found")
		return
	case r.Method == http.MethodPatch:
		merge(s.objects[path], decoded(body))
	case r.Method == http.MethodPut:
		s.objects[path] = decoded(body)
	case r.Method == http.MethodDelete:
		meta(s.objects[path])["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	}
	answer := s.objects[path]
	s.settle(path)
	respond(w, answer)
}

// put makes an object exist. A CRD is served at once.
func (s *apiServer) put(path string, o map[string]any) {
	if o["kind"] == "CustomResourceDefinition" {
		o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
	s.objects[path] = o
	s.settle(path)
}

// settle numbers a changed object, and ends one that is being deleted and that nobody holds.
func (s *apiServer) settle(path string) {
	o := s.objects[path]
	held, _ := meta(o)["finalizers"].([]any)
	if meta(o)["deletionTimestamp"] != nil && len(held) == 0 {
		delete(s.objects, path)
		return
	}
	s.version++
	meta(o)["resourceVersion"] = fmt.Sprint(s.version)
}

func (s *apiServer) below(path string) (out []string) {
	for at := range s.objects {
		if rest, ok := strings.CutPrefix(at, path+"/"); ok && !strings.Contains(rest, "/") {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

func decoded(body []byte) map[string]any {
	out := map[string]any{}
	_ = json.Unmarshal(body, &out) // what is no object is an empty one
	return out
}

// merge is JSON merge patch.
func merge(into, change map[string]any) {
	for name, value := range change {
		switch v := value.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			inner, ok := into[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				into[name] = inner
			}
			merge(inner, v)
		default:
			into[name] = value
		}
	}
}

func meta(o map[string]any) map[string]any {
	m, ok := o["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}

func respond(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // a client that went away is its own loss
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	reasons := map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 500: "InternalError"}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
		"reason": reasons[code], "message": why})
}

// hangUp is a network without a way.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}
