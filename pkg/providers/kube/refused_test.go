package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// A claim that the API server refuses as invalid is told with the labels that it is about: those of the requirement in
// the path of the field, and those whose value is quoted.
func TestLabelsOfARefusedClaim(t *testing.T) {
	for _, c := range []struct {
		causes []metav1.StatusCause
		want   []string
	}{
		{[]metav1.StatusCause{{Field: "spec.requirements[1].key",
			Message: `Invalid value: "string": label domain is restricted`}}, []string{"b.example.com/x"}},
		{[]metav1.StatusCause{{Field: "metadata.labels",
			Message: `Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters`}},
			[]string{"team"}},
		{[]metav1.StatusCause{{Field: "spec.requirements[10].key", Message: "Invalid value"}}, nil},
		{nil, nil},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			if err := json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
				Message: "it is invalid", Details: &metav1.StatusDetails{Causes: c.causes}}); err != nil {
				t.Error(err)
			}
		}))
		client, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CreateClaim(t.Context(), plan.Launch{Labels: map[string]string{"team": "a b"},
			Requirements: requirements.NewSet(requirements.Any("a"), requirements.Of("b.example.com/x", "1"))},
			cluster.Pool{Name: "p"})
		server.Close()
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || !slices.Equal(refused.RefusedLabels(), c.want) {
			t.Errorf("%v: %v, want labels %v", c.causes, err, c.want)
		}
	}
}
