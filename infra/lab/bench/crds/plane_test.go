package crds

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	planeBinary   = "../../../../.local/bin/joiner-plane" // make plane
	planePatience = 2 * time.Minute
	planePoll     = 100 * time.Millisecond
)

// startPlane runs the local control plane until the test ends. Without its binary the test is skipped; make builds it first.
func startPlane(t *testing.T) *rest.Config {
	binary, err := filepath.Abs(planeBinary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Skipf("no local control plane (make plane): %v", err)
	}
	dir := t.TempDir()
	cmd := exec.Command(binary, "--dir", dir, "--kwok=false", "--parent-pid", strconv.Itoa(os.Getpid()))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(planePatience):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	for deadline := time.After(planePatience); ; {
		if c := readyPlane(dir); c != nil {
			return c
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the plane ended before it was ready: %v", err)
		case <-deadline:
			t.Fatalf("the plane is not ready after %s", planePatience)
		case <-time.After(planePoll):
		}
	}
}

// readyPlane is how to reach the plane that lives in the directory, nil while it is not ready.
func readyPlane(dir string) *rest.Config {
	text, err := os.ReadFile(filepath.Join(dir, "plane.json")) // there exactly while it is ready
	if err != nil {
		return nil
	}
	var state struct{ Kubeconfig string }
	if json.Unmarshal(text, &state) != nil {
		return nil
	}
	c, err := clientcmd.BuildConfigFromFlags("", state.Kubeconfig)
	if err != nil {
		return nil
	}
	return c
}
