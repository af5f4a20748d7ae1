package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A buffer whose workload may not be read, or is not there, has no pods, and hides no other buffer. That the API server
// fails is an error: the room of a buffer must not go for a moment.
func TestOneUnreadableWorkloadHidesNoOtherBuffer(t *testing.T) {
	for code, want := range map[int]string{http.StatusForbidden: "[a 0 b 1]", http.StatusNotFound: "[a 0 b 1]",
		http.StatusNotImplemented: "error"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			buffer := func(name string) string {
				return `{"metadata":{"namespace":"default","name":"` + name + `"},"spec":{"podTemplateRef":{"name":"` + name + `"}}}`
			}
			switch {
			case strings.HasSuffix(r.URL.Path, "/capacitybuffers"):
				fmt.Fprint(w, `{"kind":"CapacityBufferList","items":[`+buffer("b")+","+buffer("a")+`]}`)
			case strings.HasSuffix(r.URL.Path, "/podtemplates/a"):
				w.WriteHeader(code)
				reason := map[int]string{http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound"}[code]
				fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason)
			default:
				fmt.Fprint(w, `{"kind":"PodTemplate","metadata":{"name":"b","generation":1},"template":{"spec":{"containers":[{"name":"c"}]}}}`)
			}
		}))
		client, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		all, err := client.ListBuffers(t.Context())
		server.Close()
		var got []string
		for _, b := range all {
			got = append(got, fmt.Sprint(b.Object.Name, " ", b.Generation))
		}
		if text := fmt.Sprint(slices.Clip(got)); (err != nil) != (want == "error") || err == nil && text != want {
			t.Errorf("%d: %s, error %v; want %s", code, text, err, want)
		}
	}
}
