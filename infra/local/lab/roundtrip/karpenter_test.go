package roundtrip_test

import (
	"encoding/base64"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/env"
)

var (
	program = flag.String("karpenter", "", "the program of Karpenter's controller for AWS")
	classes = flag.Int("classes", 50, "EC2NodeClasses that move, each with a NodePool")
	seed    = flag.Uint64("seed", 1, "of the classes")
)

// lease is the one that Karpenter's leader holds.
const lease = "karpenter-leader-election"

// karpenter is a process of Karpenter's controllers.
type karpenter struct {
	cmd  *exec.Cmd
	done chan error
	log  cloudtest.Log
}

// said are the log's lines with one of the words, at most the last hundred.
func (k *karpenter) said(words ...string) string {
	var out []string
	for line := range strings.Lines(k.log.String()) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) }) {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-100):], "")
}

// startKarpenter starts the controllers as a Deployment would, and waits until they lead. They know the cluster's CA as
// other bytes than EKS tells it.
func (w *world) startKarpenter() *karpenter {
	w.t.Helper()
	creds := w.Cloud.IssueCredentials(env.Administrator, "karpenter", 0)
	k := &karpenter{done: make(chan error, 1), cmd: exec.CommandContext(w.ctx, *program)}
	k.cmd.Stdout, k.cmd.Stderr = &k.log, &k.log
	k.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.t.TempDir(), "KUBECONFIG=" + w.Plane.KubeconfigPath(), "AWS_ENDPOINT_URL=" + w.Cloud.URL(), "AWS_REGION=" + env.Region,
		"AWS_ACCESS_KEY_ID=" + creds.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + creds.SecretAccessKey, "AWS_SESSION_TOKEN=" + creds.SessionToken, "AWS_EC2_METADATA_DISABLED=true",
		"CLUSTER_NAME=" + env.ClusterName, "LEADER_ELECTION_NAMESPACE=kube-system", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "BATCH_IDLE_DURATION=1s",
		"CLUSTER_CA_BUNDLE=" + base64.StdEncoding.EncodeToString(append(w.Plane.CA(), '\n'))}
	if err := k.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { k.done <- k.cmd.Wait() }()
	w.t.Cleanup(func() {
		w.stopKarpenter(k)
		if w.t.Failed() {
			w.t.Log("of Karpenter's log:\n" + k.said(`"level":"ERROR"`, `"level":"WARN"`, "panic", "disrupt", "created", "launched", "deleted"))
		}
	})
	w.until("Karpenter leads", func() (string, bool) {
		select {
		case err := <-k.done:
			k.done <- err
			w.t.Fatalf("Karpenter ended: %v\n%s", err, k.said(""))
		default:
		}
		holder := w.leader()
		return holder, holder != ""
	})
	w.leads = true
	return k
}

// leader is who holds Karpenter's lease, empty for nobody.
func (w *world) leader() string {
	l, err := w.Kube.CoordinationV1().Leases("kube-system").Get(w.ctx, lease, metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
		return ""
	}
	if time.Since(l.Spec.RenewTime.Time) > time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// stopKarpenter ends the process and waits until nobody leads.
func (w *world) stopKarpenter(k *karpenter) {
	if !w.leads {
		return
	}
	w.leads = false
	_ = k.cmd.Process.Signal(os.Interrupt) // one that has ended is as well
	select {
	case <-k.done:
	case <-time.After(10 * time.Second):
		_ = k.cmd.Process.Kill()
		<-k.done
	}
	for begun := time.Now(); w.ctx.Err() == nil && w.leader() != "" && time.Since(begun) < patience; {
		time.Sleep(poll)
	}
}
