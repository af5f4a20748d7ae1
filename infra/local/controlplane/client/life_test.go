package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/controlplane/client"
)

// judge is a token webhook that knows one token, of a member of the group.
func judge(token, group string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if review.Spec.Token == token {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: "arn:test", Groups: []string{group}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}
}

// A plane of its own: its webhook answers only after the plane is ready, its tokens go through RBAC, it can be found by
// its directory, a second plane does not take that directory, and it stops at once.
func TestOwnPlaneWithTokenWebhook(t *testing.T) {
	skipShort(t)
	t.Parallel()
	webhook := httptest.NewUnstartedServer(judge("right", "joiner-test"))
	defer webhook.Close()
	dir := t.TempDir()
	o := client.Options{
		Binary:       client.BinaryForTest(t),
		Dir:          dir,
		TokenWebhook: "http://" + webhook.Listener.Addr().String() + "/authenticate",
		WithoutKwok:  true,
		NodeGrace:    16 * time.Second,
	}
	plane := startPlane(t, o)
	webhook.Start()

	if err := listNodes(t, plane.RESTConfig(), "wrong"); !apierrors.IsUnauthorized(err) {
		t.Errorf("token the webhook does not know: %v, want 401", err)
	}
	if err := listNodes(t, plane.RESTConfig(), "right"); !apierrors.IsForbidden(err) {
		t.Errorf("token without a binding: %v, want 403", err)
	}
	letListNodes(t, plane, "joiner-test")
	eventually(t, "the binding to count", func(context.Context) (string, bool) {
		err := listNodes(t, plane.RESTConfig(), "right")
		return fmt.Sprint(err), err == nil
	})

	found, err := client.AttachPlane(dir)
	if err != nil || found.ServerURL() != plane.ServerURL() {
		t.Errorf("attach found %v, %v; want %s", found, err, plane.ServerURL())
	}
	if _, err := client.StartPlane(t.Context(), o); err == nil || !strings.Contains(err.Error(), "already runs") {
		t.Errorf("second plane in the directory: %v", err)
	}
	if err := plane.StopPlane(); err != nil {
		t.Error(err)
	}
	if err := plane.StopPlane(); err != nil {
		t.Errorf("second stop: %v", err)
	}
	if _, err := client.AttachPlane(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("attach to a stopped plane: %v, want os.ErrNotExist", err)
	}
}

// A plane that was killed leaves a state file whose process id may be somebody else's by now.
func TestStateOfAKilledPlaneIsNotBelieved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = stranger.Process.Kill(), stranger.Wait() }()
	if err := (client.State{PID: stranger.Process.Pid, Dir: dir}).WriteFile(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AttachPlane(dir); err == nil || !strings.Contains(err.Error(), "dead") {
		t.Errorf("attach: %v, want it to call the plane dead", err)
	}
	if _, err := client.StartPlane(t.Context(), client.Options{Binary: "/bin/false", Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("start: %v, want it to get as far as the program", err)
	}
}

func startPlane(t *testing.T, o client.Options) *client.Plane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	plane, err := client.StartPlane(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.StopPlane() })
	return plane
}

func letListNodes(t *testing.T, plane *client.Plane, group string) {
	t.Helper()
	client := clientOf(t, plane)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nodes"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A plane must not outlive the program that started it, even one that was killed and could not stop it.
func TestPlaneEndsWithItsParent(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plane")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+dir, binaryEnv+"="+client.BinaryForTest(t))
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Wait() }() // it is killed: the error is expected
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the parent said %q, want ready", lines.Text())
	}
	plane, err := client.AttachPlane(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.StopPlane() }) // for the case that this test is needed
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the plane to end and remove its directory", func(context.Context) (string, bool) {
		alive := syscall.Kill(plane.State().PID, 0) == nil
		_, err := os.Stat(dir)
		return fmt.Sprintf("alive=%t, directory: %v", alive, err), !alive && errors.Is(err, os.ErrNotExist)
	})
}

func TestStartSaysWhyThePlaneEnded(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "plane")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho port is taken >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := client.StartPlane(t.Context(), client.Options{Binary: script, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("error = %v, want the exit status and what the plane said", err)
	}
}

// failure records how a test would have failed.
type failure struct{ said string }

func (*failure) Helper() {}
func (f *failure) Fatalf(format string, args ...any) {
	f.said += fmt.Sprintf(format, args...)
}

func TestMissingBinaryNamesTheRemedy(t *testing.T) {
	t.Setenv(client.KubernetesEnv, "1.0")
	var f failure
	client.BinaryForTest(&f)
	if !strings.Contains(f.said, "make plane") {
		t.Errorf("message = %q, want it to say make plane", f.said)
	}
}

// skipShort leaves a test out of a short run. This module knows nothing of the product and its package for that.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
}
