package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// lone is an API server with one object, which it changes by merge patches on the conditions that they name.
type lone struct {
	t     *testing.T
	kind  string
	meta  metav1.ObjectMeta
	asked []string
}

func (s *lone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.Method)
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, body any) {
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			s.t.Error(err)
		}
	}
	if r.Method == http.MethodPatch {
		var patch struct {
			Metadata struct {
				UID, ResourceVersion string
				Labels, Annotations  map[string]string
				Finalizers           *[]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			s.t.Error(err)
		}
		m := patch.Metadata
		refuse := func(code int32, why metav1.StatusReason) {
			answer(int(code), metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: why, Code: code})
		}
		switch {
		case m.ResourceVersion != "" && m.ResourceVersion != s.meta.ResourceVersion:
			refuse(http.StatusConflict, metav1.StatusReasonConflict)
			return
		case m.UID != "" && m.UID != string(s.meta.UID):
			refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			return
		}
		s.meta.Labels, s.meta.Annotations = mergeLabels(s.meta.Labels, m.Labels), mergeLabels(s.meta.Annotations, m.Annotations)
		if m.Finalizers != nil {
			s.meta.Finalizers = *m.Finalizers
		}
		s.touch()
	}
	if s.kind == "Node" {
		answer(http.StatusOK, corev1.Node{TypeMeta: metav1.TypeMeta{Kind: s.kind, APIVersion: "v1"}, ObjectMeta: s.meta})
		return
	}
	answer(http.StatusOK, karpv1.NodeClaim{TypeMeta: metav1.TypeMeta{Kind: s.kind, APIVersion: karpv1.GroupVersion().String()}, ObjectMeta: s.meta})
}

// touch is a change of somebody's.
func (s *lone) touch() {
	n, err := strconv.Atoi(s.meta.ResourceVersion)
	if err != nil {
		s.t.Error(err)
	}
	s.meta.ResourceVersion = strconv.Itoa(n + 1)
}

// cost fails unless these requests were made since it was asked last.
func (s *lone) cost(what string, want ...string) {
	s.t.Helper()
	if d := cmp.Diff(want, s.asked); d != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, d)
	}
	s.asked = nil
}

func holding(t *testing.T, kind string) (*lone, *Client) {
	t.Helper()
	s := &lone{t: t, kind: kind, meta: metav1.ObjectMeta{Name: "one", UID: "u1", ResourceVersion: "7", Finalizers: []string{"other", karpv1.FinalizerTermination}}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// A node that was read is changed without reading it again, and as often as one likes; anew when somebody was faster,
// whose change stays.
func TestANodeThatIsKnownIsNotReadAgain(t *testing.T) {
	s, c := holding(t, "Node")
	n, err := c.ReadNode(t.Context(), "one")
	s.cost("a look", "GET")
	if err = errors.Join(err, c.InitializeNode(t.Context(), n)); err != nil {
		t.Fatal(err)
	}
	s.cost("a change of a node that was read", "PATCH")
	if err := c.TaintForTermination(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	s.cost("a change of a node that was changed", "PATCH")
	s.meta.Finalizers = append(s.meta.Finalizers, "new")
	s.touch()
	if err := c.ReleaseNode(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	s.cost("somebody was faster", "PATCH", "GET", "PATCH")
	if d := cmp.Diff([]string{"other", "new"}, s.meta.Finalizers); d != "" || s.meta.Labels[karpv1.LabelInitialized] != "true" {
		t.Errorf("labels %v, finalizers (-want +got):\n%s", s.meta.Labels, d)
	}
	if err := c.InitializeNode(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	s.cost("nothing to do, as far as is known", "GET")
	delete(s.meta.Labels, karpv1.LabelInitialized)
	s.meta.UID = "u2"
	s.touch()
	var conflict *ConflictError
	if err := c.InitializeNode(t.Context(), n); !errors.As(err, &conflict) || s.meta.Labels[karpv1.LabelInitialized] != "" {
		t.Errorf("a change of a node that was replaced: %v, labels %v", err, s.meta.Labels)
	}
}

// A claim that was read, or written, is released without reading it again; anew when somebody was faster.
func TestAClaimThatIsKnownIsNotReadAgain(t *testing.T) {
	for name, in := range map[string]struct {
		meanwhile func(*lone)
		want      []string
	}{
		"as it was read":      {func(*lone) {}, []string{"PATCH"}},
		"somebody was faster": {func(s *lone) { s.meta.Finalizers = append(s.meta.Finalizers, "new"); s.touch() }, []string{"PATCH", "GET", "PATCH"}},
	} {
		s, c := holding(t, "NodeClaim")
		claim, err := c.AnnotateClaim(t.Context(), cluster.Claim{Name: "one", UID: "u1", Version: "7"}, map[string]string{"a": "b"})
		if err != nil {
			t.Fatal(err)
		}
		in.meanwhile(s)
		s.asked = nil
		if err := c.ReleaseClaim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		s.cost(name, in.want...)
		if slices.Contains(s.meta.Finalizers, karpv1.FinalizerTermination) || s.meta.Finalizers[0] != "other" {
			t.Errorf("%s: finalizers %v are left", name, s.meta.Finalizers)
		}
	}
}

// A claim that is given without its version is annotated whatever else was changed, but not one that took its name.
func TestAnnotationsThatStandByThemselves(t *testing.T) {
	s, c := holding(t, "NodeClaim")
	of := func(uid, version string) cluster.Claim { return cluster.Claim{Name: "one", UID: uid, Version: version} }
	note := map[string]string{"a": "b"}
	var other *ConflictError
	if _, err := c.AnnotateClaim(t.Context(), of("u1", "6"), note); !isConflict(err) || s.meta.Annotations["a"] != "" {
		t.Errorf("an old version: %v, annotations %v", err, s.meta.Annotations)
	}
	if _, err := c.AnnotateClaim(t.Context(), of("u2", ""), note); !errors.As(err, &other) || s.meta.Annotations["a"] != "" {
		t.Errorf("another claim: %v, annotations %v", err, s.meta.Annotations)
	}
	if got, err := c.AnnotateClaim(t.Context(), of("u1", ""), note); err != nil || s.meta.Annotations["a"] != "b" || got.Version != "8" {
		t.Errorf("without a version: %v, annotations %v, stored as %s", err, s.meta.Annotations, got.Version)
	}
	if _, err := c.AnnotateClaim(t.Context(), of("", ""), note); err == nil || !strings.Contains(err.Error(), "version is not known") {
		t.Errorf("neither UID nor version: %v", err)
	}
}
