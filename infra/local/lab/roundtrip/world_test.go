package roundtrip_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
	"joiner.sh/pkg/cli"
)

const (
	patience = 3 * time.Minute
	poll     = 200 * time.Millisecond
	leakAge  = 30 * time.Second // after which Joiner ends an instance without a NodeClaim
)

// world is an environment where Joiner is deployed, and Karpenter comes and goes.
type world struct {
	*env.Env
	t     *testing.T
	ctx   context.Context
	leads bool // Karpenter
	logs  *logBook
}

// logBook keeps what the functions log.
type logBook struct{ cloudtest.Log }

// start brings up the environment with Joiner deployed to act. Its schedules are paused: the test runs them.
func start(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), logs: &logBook{}}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	w.Env, err = env.StartEnvironment(t.Context(), env.Options{Root: root, Dir: filepath.Join(t.TempDir(), "plane"), Paused: true, PendingFor: 200 * time.Millisecond,
		BootDelay: 200 * time.Millisecond, FunctionLog: w.logs, CollectPods: true,
		Lose: func([]byte) bool { return true },
		Env:  map[string]string{"WATCH_DURATION": "1s", "DISRUPTION": "act"}})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("of the functions' log:\n" + w.logs.said())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// said are the lines that are no records of Lambda, the last 200.
func (l *logBook) said() string {
	var out []string
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, " RequestId: ") {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-200):], "")
}

// tick runs functions one after the other, as their schedules would, and wants each to succeed.
func (w *world) tick(functions ...string) {
	w.t.Helper()
	for _, f := range functions {
		res, err := w.Host.InvokeFunction(w.ctx, w.FunctionName(f), lambdahost.RequestResponse, nil)
		for begun := time.Now(); isBusy(err) && time.Since(begun) < patience; {
			time.Sleep(poll) // another invocation runs
			res, err = w.Host.InvokeFunction(w.ctx, w.FunctionName(f), lambdahost.RequestResponse, nil)
		}
		if err != nil || res.FunctionError != "" {
			w.t.Fatalf("%s ended with %v, %s", f, err, res.Payload)
		}
	}
}

// isBusy reports whether another invocation of the function runs.
func isBusy(err error) bool {
	e, ok := errors.AsType[*lambdahost.Error](err)
	return ok && e.Status == 429
}

// round runs all that Joiner has on schedules.
func (w *world) round() {
	w.t.Helper()
	w.tick("refresh", "provision", "lifecycle", "disrupt", "provision", "lifecycle")
}

// until looks, and ticks the functions in between, until the look is satisfied.
func (w *world) until(what string, look func() (saw string, ok bool), functions ...string) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		saw, ok := look()
		if ok {
			return
		}
		if time.Now().After(end) || w.ctx.Err() != nil {
			w.t.Fatalf("%s: not within %s; last seen: %s", what, patience, saw)
		}
		w.tick(functions...)
		time.Sleep(poll)
	}
}

// joiner runs a command of the command line as somebody who may do everything.
func (w *world) joiner(args ...string) (code int, out string) {
	w.t.Helper()
	var o, p bytes.Buffer
	code = cli.Run(append(args, "--kubeconfig", w.Plane.KubeconfigPath()), &o, &p)
	return code, o.String() + p.String()
}

func (w *world) apply(text string) {
	w.t.Helper()
	if err := w.Kube.ApplyManifest(w.ctx, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) listed(of schema.GroupVersionResource) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.Kube.Dynamic.Resource(of).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// patch changes an object by a merge patch.
func (w *world) patch(of schema.GroupVersionResource, name, patch string) {
	w.t.Helper()
	if _, err := w.Kube.Dynamic.Resource(of).Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// condition is a condition of an object, without a status if there is none.
func condition(o unstructured.Unstructured, name string) (status, reason, message string) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == name {
			status, _ = m["status"].(string)
			reason, _ = m["reason"].(string)
			message, _ = m["message"].(string)
		}
	}
	return status, reason, message
}

// notYet names objects whose condition is not True, with the reason.
func (w *world) notYet(of schema.GroupVersionResource, name string) []string {
	w.t.Helper()
	var out []string
	for _, o := range w.listed(of) {
		if status, reason, message := condition(o, name); status != "True" {
			out = append(out, fmt.Sprintf("%s %s %s %.200s", o.GetName(), status, reason, message))
		}
	}
	return out
}

// holding is what must not change when the cluster moves: which instance is whose node and NodeClaim.
func (w *world) holding() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, c := range w.listed(env.NodeClaims()) {
		id, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		node, _, _ := unstructured.NestedString(c.Object, "status", "nodeName")
		deleting := ""
		if c.GetDeletionTimestamp() != nil {
			deleting = " being deleted"
		}
		out[c.GetName()] = fmt.Sprintf("%s %s on %s%s", c.GetUID(), node, id, deleting)
	}
	for _, i := range w.Cloud.DescribedInstances() {
		if i.State == "pending" || i.State == "running" {
			out[i.ID] = i.State
		}
	}
	return out
}

// changed says what of a holding is another now.
func changed(before, after map[string]string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(before)) {
		if after[k] != before[k] {
			out = append(out, fmt.Sprintf("%s was %q and is %q", k, before[k], after[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[k]; !there {
			out = append(out, fmt.Sprintf("%s is new: %q", k, after[k]))
		}
	}
	return out
}

// drifted names the NodeClaims that are called drifted, with the reason.
func (w *world) drifted() (out []string) {
	w.t.Helper()
	for _, c := range w.listed(env.NodeClaims()) {
		if status, reason, message := condition(c, "Drifted"); status == "True" {
			out = append(out, fmt.Sprintf("%s of %s: %s %s", c.GetName(), c.GetLabels()["karpenter.sh/nodepool"], reason, message))
		}
	}
	return out
}

// unready counts the pods that are not ready.
func (w *world) unready() (all, not int) {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range list.Items {
		if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			not++
		}
	}
	return len(list.Items), not
}

// served waits until so many pods run and every NodeClaim is initialized.
func (w *world) served(pods int, functions ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d pods run", pods), func() (string, bool) {
		all, not := w.unready()
		claims := w.notYet(env.NodeClaims(), "Initialized")
		saw := fmt.Sprintf("%d pods, %d not ready; %d NodeClaims, %d not initialized %.2000v; classes %.2000v, pools %.500v", all, not, len(w.listed(env.NodeClaims())), len(claims), claims,
			w.notYet(env.NodeClasses(), "Ready"), w.notYet(env.NodePools(), "Ready"))
		return saw, all == pods && not == 0 && len(claims) == 0
	}, functions...)
}
