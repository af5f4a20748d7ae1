package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	environment "joiner.sh/infra/local/env"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/cli/recording"
)

// stagesOfAccept are what a run says when a step begins or ends, in their order.
func stagesOfAccept() []string {
	return []string{"NodePool ready", "pods pending", "nodes in service", "pods running", "fewer pods, fewer nodes", "spot notice", "no pods, no nodes", "removal"}
}

const usersClass = `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: users}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: KarpenterNodeRole-demo
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
`

// acceptWorld is a whole environment with an EC2NodeClass that is ready, which the process's own AWS and kubeconfig
// lead to.
type acceptWorld struct {
	*environment.Env
	logs *cloudtest.Log
	dir  string
	had  map[string]bool // launch templates of the user's class
}

func newAcceptWorld(t *testing.T) acceptWorld {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	w := acceptWorld{logs: &cloudtest.Log{}, dir: t.TempDir()}
	w.Env, err = environment.StartEnvironment(t.Context(), environment.Options{Root: root, Dir: filepath.Join(w.dir, "plane"), PendingFor: 200 * time.Millisecond,
		BootDelay: 200 * time.Millisecond, Minute: 5 * time.Second, FunctionLog: w.logs, CollectPods: true})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(w.logs.String())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := w.Cloud.IssueCredentials(environment.Administrator, "terminal", 0)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": w.Cloud.URL(), "AWS_REGION": environment.Region, "AWS_ACCESS_KEY_ID": keys.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY": keys.SecretAccessKey, "AWS_SESSION_TOKEN": keys.SessionToken} {
		t.Setenv(name, value)
	}
	if err := w.Kube.ApplyManifest(t.Context(), []byte(usersClass)); err != nil {
		t.Fatal(err)
	}
	env{}.eventually(t, "the class to be ready", func(ctx context.Context) (string, bool) {
		o, err := w.Kube.Dynamic.Resource(environment.NodeClasses()).Get(ctx, "users", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && strings.Contains(fmt.Sprint(o.Object["status"]), "status:True type:Ready")
	})
	w.had = map[string]bool{}
	for _, name := range w.Cloud.LaunchTemplates() {
		w.had[name] = true
	}
	return w
}

// accept runs the command, and interrupts it when it says the words, if there are any.
func (w acceptWorld) accept(t *testing.T, at string, args ...string) (code int, said string) {
	t.Helper()
	out, done := &screen{}, make(chan int, 1)
	args = append([]string{"accept", "--cluster", environment.ClusterName, "--yes", "--kubeconfig", w.Plane.KubeconfigPath(), "--record", filepath.Join(t.TempDir(), "answers")}, args...)
	go func() { done <- cli.Run(args, out, out) }()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case code := <-done:
			return code, out.String()
		case <-tick.C:
			if at != "" && strings.Contains(out.String(), at) {
				at = ""
				if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil { // the command listens for it
					t.Fatal(err)
				}
			}
		}
	}
}

// traces are what there is of a run, by the test's own eyes.
func (w acceptWorld) traces(t *testing.T) (out []string) {
	t.Helper()
	pools, err := w.Kube.Dynamic.Resource(environment.NodePools()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := w.Kube.Dynamic.Resource(environment.NodeClaims()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	classes, err := w.Kube.Dynamic.Resource(environment.NodeClasses()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range slices.Concat(pools.Items, claims.Items, classes.Items) {
		if o.GetName() != "users" {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	spaces, err := w.Kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "joiner.sh/accept"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range spaces.Items {
		out = append(out, "Namespace "+n.Name)
	}
	for _, i := range w.Cloud.DescribedInstances() {
		if i.State != "terminated" {
			out = append(out, "instance "+i.ID+" "+i.State)
		}
	}
	for _, name := range w.Cloud.LaunchTemplates() {
		if !w.had[name] {
			out = append(out, "launch template "+name)
		}
	}
	return out
}

// A run does the main job with the functions of the stack, and leaves nothing; what AWS answered is recorded.
func TestAcceptAgainstTheEmulator(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; a run that is interrupted at a random step is played in its place")
	}
	w := newAcceptWorld(t)
	answers := filepath.Join(t.TempDir(), "recorded")
	code, said := w.accept(t, "", "--record", answers)
	if code != 0 || len(w.traces(t)) > 0 {
		t.Fatalf("exit %d, left %v: %s", code, w.traces(t), said)
	}
	for _, stage := range stagesOfAccept() {
		if !regexp.MustCompile(`\d s  ` + stage + `: `).MatchString(said) {
			t.Errorf("it did not say %q: %s", stage, said)
		}
	}
	if n := w.Host.CurrentStats().Functions[w.FunctionName("spotinterruption")].Invocations; n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	calls, err := recording.Read(answers)
	if err != nil || len(calls) < 20 {
		t.Errorf("%d calls are recorded, %v", len(calls), err)
	}
	for _, c := range calls {
		if strings.Contains(c.Answer, environment.Account) {
			t.Errorf("%s %s is not redacted: %s", c.Service, c.Path, c.Answer)
		}
	}
}

// Interrupted at one step, at random here and at each at full length, a run is removed by --clean. Later steps come up
// less often: they take what all before them take as well.
func TestAcceptInterruptedAgainstTheEmulator(t *testing.T) {
	stages := stagesOfAccept()
	if testing.Short() {
		i := min(rand.IntN(len(stages)), rand.IntN(len(stages)))
		stages = stages[i : i+1]
	}
	w := newAcceptWorld(t)
	for _, stage := range stages {
		code, said := w.accept(t, stage)
		if code == 0 && stage == "removal" {
			continue // it was quicker
		}
		if code != 1 || !strings.Contains(said, "interrupted: joiner accept --cluster demo --clean") {
			t.Fatalf("at %s: exit %d: %s", stage, code, said)
		}
		if code, said = w.accept(t, "", "--clean"); code != 0 || len(w.traces(t)) > 0 {
			t.Fatalf("at %s: clean ends with %d, left %v: %s", stage, code, w.traces(t), said)
		}
	}
}

// It refuses what it should, with all reasons and before it makes anything; and a volume that stays is told.
func TestAcceptRefusesAndTellsOfLeaks(t *testing.T) {
	e := newEnv(t)
	c := account(t)
	c.SetCluster(e.plane.ServerURL(), e.plane.CA(), "10.100.0.0/16")
	for _, f := range []string{"provision", "spotinterruption"} {
		c.PutFunction(awsemulator.DescribedFunction{Name: "joiner-demo-" + f, State: "Active", Environment: map[string]string{"MODE": "observe"}})
	}
	c.SetStackStatus("joiner-demo", "UPDATE_IN_PROGRESS")
	e.pool(t, "users", "m5.large")
	e.applyAll(t, strings.Replace(looseDeployment, "spec: {containers", "spec: {tolerations: [{operator: Exists}], containers", 1))
	c.PutTagged("volume", "vol-0left", map[string]string{"joiner.sh/accept": "2a97516c-20260101-000000"})
	c.PutTagged("volume", "vol-0other", map[string]string{"joiner.sh/accept": "00000000-20260101-000000"})
	ask := func(args ...string) (int, string) {
		var out bytes.Buffer
		args = append([]string{"accept", "--cluster", "demo", "--yes", "--kubeconfig", e.plane.KubeconfigPath(), "--record", filepath.Join(t.TempDir(), "answers")}, args...)
		return cli.Run(args, &out, &out), out.String()
	}
	e.eventually(t, "all reasons to be told", func(context.Context) (string, bool) {
		code, said := ask()
		for _, want := range []string{"mode observe", "stack joiner-demo is UPDATE_IN_PROGRESS", "could go onto the nodes of the run: default/loose-", "volume vol-0left is there already", "nothing was made"} {
			if !strings.Contains(said, want) {
				return fmt.Sprint(code, said), false
			}
		}
		return said, code == 3 && !strings.Contains(said, "vol-0other")
	})
	if code, said := ask("--like", "none"); code != 3 || !strings.Contains(said, "there is no EC2NodeClass none that is ready") {
		t.Errorf("another class: exit %d: %s", code, said)
	}
	for action := range c.CallCounts() {
		if name := action[strings.Index(action, ":")+1:]; !strings.HasPrefix(name, "Describe") && !strings.HasPrefix(name, "Get") && !strings.HasPrefix(name, "List") {
			t.Errorf("a run that is refused calls %s", action)
		}
	}
	e.pool(t, "joiner-accept", "m5.large") // of somebody's, without the label
	if code, said := ask("--clean"); code != 3 || !strings.Contains(said, "NodePool joiner-accept is not of a run in cluster demo") {
		t.Errorf("cleaning where others use the name: exit %d: %s", code, said)
	}
	for _, r := range []schema.GroupVersionResource{pools(), classes()} {
		if _, err := e.dynamic.Resource(r).Get(t.Context(), "joiner-accept", metav1.GetOptions{}); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	c.SetCluster("https://127.0.0.1:1", []byte("another"), "10.100.0.0/16")
	if code, said := ask(); code != 2 || !strings.Contains(said, "which is not cluster demo") {
		t.Errorf("another cluster: exit %d: %s", code, said)
	}
}
