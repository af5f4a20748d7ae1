package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/model/buffers"
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

// A name in a reference is whatever somebody writes. It names an object of the buffer's namespace or none: no path of
// another, no request that is refused for its length and would end the pass.
func TestABufferNamesAnObjectOfItsNamespace(t *testing.T) {
	names := []string{"../../other/podtemplates/b", "..", ".", "a/b", "a%2fb", strings.Repeat("x", 1<<20), "a?b#c", "\x00\u202e", "b"}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/capacitybuffers") {
			var items []string
			for i, name := range names {
				text, _ := json.Marshal(name)
				items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"default","name":"b%d"},"spec":{"podTemplateRef":{"name":%s}}}`, i, text))
			}
			fmt.Fprintf(w, `{"kind":"CapacityBufferList","items":[%s]}`, strings.Join(items, ","))
			return
		}
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/b") {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
			return
		}
		fmt.Fprint(w, `{"kind":"PodTemplate","metadata":{"name":"b","generation":1},"template":{"spec":{"containers":[{"name":"c"}]}}}`)
	}))
	defer server.Close()
	client, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.ListBuffers(t.Context())
	if err != nil || len(all) != len(names) {
		t.Fatalf("%d buffers: %.500v", len(all), err)
	}
	for i, b := range all {
		if found := b.Template != nil; found != (names[i] == "b") {
			t.Errorf("%.80q: found is %t", names[i], found)
		}
		buffers.UpdateStatus(b, nil, time.Unix(0, 0))
		if message := b.Object.Status.Conditions[0].Message; len(message) > 1000 {
			t.Errorf("%.80q: a message of %d bytes, which the API server refuses", names[i], len(message))
		}
	}
	for _, path := range asked {
		if !strings.HasPrefix(path, "/api/v1/namespaces/default/podtemplates/") || strings.Count(path, "/") != 6 {
			t.Errorf("asked for %.200q", path)
		}
	}
}
