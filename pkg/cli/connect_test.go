package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"joiner.sh/pkg/testing/shortrun"
)

// Amazon EKS lets few reads a second through: whoever asks for many entries is throttled, and gets them all the same.
func TestAThrottledReadIsAskedAgain(t *testing.T) {
	shortrun.Skip(t)    // eight seconds of waits
	const throttled = 3 // one more than the SDK's own attempts allow
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked.Add(1) <= throttled {
			w.Header().Set("X-Amzn-Errortype", "ThrottlingException")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message":"Rate exceeded"}`))
			return
		}
		_, _ = w.Write([]byte(`{"accessEntries":[]}`))
	}))
	defer s.Close()
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	t.Setenv("AWS_REGION", "us-west-2")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	cfg, err := loadAWSConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e := entryFacts(t.Context(), eks.NewFromConfig(cfg), "demo"); e.Unknown != "" || asked.Load() != throttled+1 {
		t.Errorf("asked %d times: %s", asked.Load(), e.Unknown)
	}
}

// A kubeconfig that is none is told with its name and what to do.
func TestKubeconfigsThatAreNone(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "config")
	for name, c := range map[string]struct{ text, want string }{
		"UTF-16, as PowerShell writes it": {"\xff\xfea\x00p\x00i\x00", file + " is in UTF-16, as PowerShell writes it; save it as UTF-8"},
		"cut in the middle":               {"apiVersion: v1\nclusters:\n- cluster: {server: \"https://", file},
		"a manifest":                      {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", file},
		"an HTML page":                    {"<!DOCTYPE html>\n<html>", file},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (clusterTarget{kubeconfig: file}).connectCluster(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
	if _, err := (clusterTarget{kubeconfig: folder}).connectCluster(); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder: error %v", err)
	}
}

// Who may not read NodePools is told so, and gets no answer that knows none.
func TestExplainWithoutTheRightToReadNodePools(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/nodepools") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"nodepools.karpenter.sh is forbidden"}`))
			return
		}
		_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"1"},"items":[]}`))
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "config")
	config := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\nclusters: [{name: c, cluster: {server: " + s.URL + "}}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, said := run("explain", "pod/x", "--kubeconfig", file, "--output", "json")
	if code != 1 || out != "" || !strings.Contains(said, "nodepools.karpenter.sh is forbidden") || !strings.Contains(said, "this identity has no right to read that") {
		t.Errorf("exit %d, prints %q, says %s", code, out, said)
	}
}
