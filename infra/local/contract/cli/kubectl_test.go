package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"joiner.sh/pkg/testing/readme"
)

// fatal is what kubectl says instead of ending the program.
type fatal struct {
	message string
	code    int
}

// kubectl runs the real one within this process.
func (e env) kubectl(args ...string) (out, problem string) {
	var o, p bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true)
	kubeconfig := e.plane.KubeconfigPath()
	flags.KubeConfig = &kubeconfig
	c := cmd.NewKubectlCommand(cmd.KubectlOptions{Arguments: append([]string{"kubectl"}, args...), ConfigFlags: flags,
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &p}})
	c.SetArgs(args)
	c.SetOut(io.Discard)
	c.SetErr(&p)
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(fatal{message, code}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	func() {
		defer func() {
			if f, ok := recover().(fatal); ok {
				p.WriteString(fmt.Sprintf("%s (%d)", f.message, f.code))
			}
		}()
		if err := c.Execute(); err != nil {
			p.WriteString(err.Error())
		}
	}()
	return o.String(), p.String()
}

const poolStatus = `conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`

// Every command of kubectl in the pages runs against a real API server, with names of this cluster in place of those
// that stand for any.
func TestKubectlCommandsInTheDocs(t *testing.T) {
	e := newEnv(t)
	pages, err := readme.Pages("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, text := range pages {
		for _, c := range readme.Commands(text) {
			if words := strings.Fields(c); words[0] == "kubectl" && !slices.Contains(commands, c) {
				commands = append(commands, c)
			}
		}
	}
	if len(commands) < 8 {
		t.Fatalf("only these commands were found: %q", commands)
	}
	e.applyAll(t, `apiVersion: v1
kind: Event
metadata: {name: told, namespace: default}
involvedObject: {apiVersion: v1, kind: Pod, name: web, namespace: default}
reason: FailedScheduling
message: no NodePool can give it a node
type: Warning
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: joiner-push}
`)
	for i, c := range commands {
		name := fmt.Sprintf("typed%d", i)
		e.node(t, name)
		e.status(t, pools(), name, poolStatus)
		e.applyAll(t, karpenter)
		args := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(c, "kubectl "), "'", ""))
		kind := ""
		for j, a := range args {
			switch {
			case a == "POD":
				args[j] = name + "-web"
			case a == "NODE":
				args[j] = name + "-node"
			case a == "NAME":
				args[j] = name
			case a == "node" || a == "nodeclaim":
				kind = a
			}
		}
		if args[0] == "delete" { // nobody here takes finalizers off
			if len(args) == 2 { // the pages leave the name out
				args = append(args, name+map[string]string{"node": "-node", "nodeclaim": "-claim"}[kind])
			}
			args = append(args, "--wait=false")
		}
		out, problem := e.kubectl(args...)
		if problem != "" || out == "" {
			t.Errorf("%s (as %v): %s%s", c, args, out, problem)
		}
	}
	if out, _ := e.kubectl("get", "events", "-A"); !strings.Contains(out, "no NodePool can give it a node") {
		t.Errorf("what was told of the pod is not among the events: %s", out)
	}
	if out, problem := e.kubectl("get", "nodepools,nodeclaims,ec2nodeclasses", "-o", "wide"); problem != "" || !strings.Contains(out, "NAME") {
		t.Errorf("%s%s", out, problem)
	}
	if _, problem := e.kubectl("get", "nodepool", "nobody"); !strings.Contains(problem, `nodepools.karpenter.sh "nobody" not found`) {
		t.Errorf("what is not there: %s", problem)
	}
}
