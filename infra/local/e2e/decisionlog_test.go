package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/decisionlog"
)

// joiner runs the command line as it was built, as an administrator at a terminal does.
func (w *world) joiner(args ...string) (code int, out, messages string) {
	w.t.Helper()
	k := w.Cloud.IssueCredentials(env.Administrator, "terminal", 0)
	var o, m bytes.Buffer
	c := exec.CommandContext(w.ctx, filepath.Join(root(w.t), ".local/bin/joiner"), args...)
	c.Stdout, c.Stderr = &o, &m
	c.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+w.Cloud.URL(), "AWS_REGION="+env.Region, "AWS_ACCESS_KEY_ID="+k.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY="+k.SecretAccessKey, "AWS_SESSION_TOKEN="+k.SessionToken, "KUBECONFIG="+w.Plane.KubeconfigPath())
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		w.t.Fatalf("run joiner %v: %v", args, err)
	}
	return c.ProcessState.ExitCode(), o.String(), m.String()
}

// What the functions stored in S3 while another controller led is what Joiner would have done, and each pass, observed
// or acted upon, is decided anew to the same plan. The command line reads prices and the whole state of account and
// cluster from the same places.
func TestTheDecisionLogInS3IsReplayed(t *testing.T) {
	w := start(t, func(o *env.Options) {
		o.Env["DECISION_LOG"] = "store"
		o.Grant = func(a awsemulator.Access) bool { // which the stack does with decisionLog: store
			return a.Action == "s3:PutObject" && strings.Contains(a.Resource, "/passes/")
		}
	})
	w.ready()
	bucket := w.Assembly.Buckets[0].Name
	if code, _, messages := w.joiner("replay", "--since", "1h", "--catalog-bucket", bucket); code != 1 || !strings.Contains(messages, "holds no pass of the last 1h0m0s") {
		t.Errorf("an empty log: exit %d, %s", code, messages)
	}

	w.karpenterLeads(true)
	w.apply(deployment{name: "web", replicas: 3})
	w.exist("web", 3)
	w.tick("provision")
	w.started(0)
	code, out, messages := w.joiner("shadow", "--since", "1h", "--catalog-bucket", bucket, "-o", "json")
	var s decisionlog.Comparison
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, messages)
	}
	if s.Total.Launches < 1 || s.Total.LaunchUSD <= 0 || s.Acted != 0 {
		t.Errorf("the shadow of pods that wait: %+v", s)
	}

	w.karpenterLeads(false)
	w.until("functions to see that nobody leads", func() (string, bool) {
		return "nothing is launched", len(w.living()) > 0
	}, "provision")
	w.serve("web", 3)
	code, out, messages = w.joiner("replay", "--since", "1h", "--catalog-bucket", bucket)
	if n := strings.Count(out, ": same plan\n"); code != 0 || n < 2 || strings.Contains(out, "another plan") {
		t.Errorf("exit %d, %d plans are the same\n%s%s", code, n, out, messages)
	}
	pod := w.pods("web")[0]
	code, out, messages = w.joiner("explain", "node", pod.Spec.NodeName, "--since", "1h", "--catalog-bucket", bucket)
	if code != 0 || !strings.Contains(out, "decided before:") || !strings.Contains(out, "launch") {
		t.Errorf("exit %d, what was decided about the node is not told:\n%s%s", code, out, messages)
	}
	if code, out, messages = w.joiner("doctor", "--cluster", env.ClusterName, "--all"); code != 0 || !strings.Contains(out, "fine    functions:") || !strings.Contains(out, "fine    access entries:") {
		t.Errorf("the doctor of a stack that works: exit %d\n%s%s", code, out, messages)
	}
}
