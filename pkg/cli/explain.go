package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/explain"
	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

const explainHelp = `Say why a pod, a node or a NodePool is as it is: why a pod waits, why a node is of this type, why disruption takes or spares it, why a pool is
not used; and the smallest change that would give the pod a node, or let the node go. Answers come from the cluster as it is now, and with
--since from the decision log too (-f log lines, or the stack's bucket). A change is found by deciding again with it made. --tried lists what
does not help. --search-work bounds the search; it is counted, and the same on every machine.

--output json has under whatIf: changes, the cheapest first, each with edits (kind, namespace, name, field, from, to, place), brings, addsUSD
and others; tried, unasked, questions and work. joiner plan has wouldHelp, a list of sentences, with each group that is unschedulable, and
joiner status has protections: guard, nodes, dailyUSD, together. These names do not change before version 2.`

type explainFlags struct {
	clusterTarget
	logRange
	files     []string
	namespace string
	output    outputForm
	tried     bool
	work      int
}

func explainCommand(term terminalOutput) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use: "explain pod|node|nodepool NAME", Short: "Explain the state of a pod, a node or a NodePool",
		Long:      explainHelp,
		Example:   "  joiner explain pod web-5d9c -n shop\n  joiner explain node ip-10-0-1-2.ec2.internal --since 24h --catalog-bucket BUCKET\n  joiner explain nodepool general",
		ValidArgs: []string{"pod", "node", "nodepool"},
		RunE:      func(cmd *cobra.Command, args []string) error { return runExplain(cmd.Context(), f, args, term) },
	}
	f.clusterTarget.addFlags(cmd)
	f.logRange.addFlags(cmd)
	cmd.Flags().StringArrayVarP(&f.files, "file", "f", nil, "log lines of the functions, several times")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "namespace of the pod")
	cmd.Flags().BoolVar(&f.tried, "tried", false, "list the changes that do not help, too")
	cmd.Flags().IntVar(&f.work, "search-work", whatif.DefaultWork,
		"work of the search for what would help: a question is 400, three more for each node, four for each pod that waits and one for 40 instance types of each NodePool; 0 for none")
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runExplain(ctx context.Context, f explainFlags, args []string, term terminalOutput) error {
	if len(args) == 1 && strings.Count(args[0], "/") == 1 { // as kubectl takes it
		args = strings.Split(args[0], "/")
	}
	if len(args) != 2 {
		return &inputError{errors.New("say what is to be explained: pod, node or nodepool, and its name")}
	}
	kind, name := kindAsked(args[0]), args[1]
	if kind == "" {
		return &inputError{fmt.Errorf("%q cannot be explained; pod, node, nodeclaim and nodepool can", args[0])}
	}
	l, err := f.connectCluster()
	if err != nil {
		return err
	}
	var source explain.Source
	if f.logRange.bucket = f.clusterTarget.bucket; f.since > 0 || len(f.files) > 0 {
		if source.Records, err = f.recordsOf(ctx, f.files, term); err != nil {
			return err
		}
	}
	if source.Snapshot, err = f.readSnapshot(ctx, term, l); err != nil {
		return err
	}
	source.Memory, err = store.NewDisruptionMemory[disruption.Memory](l.kube).ReadMemory(ctx)
	if err != nil {
		source.Memory = disruption.Memory{} // only says less about what disruption has in mind
	}
	places := newEditPlaces(ctx, l)
	if places.judge, err = crdcheck.NewJudge(); err != nil {
		return err
	}
	ask := explain.ExplainPool
	switch kind {
	case "pod":
		if !strings.Contains(name, "/") {
			name = f.namespace + "/" + name
		}
		source.Asked, ask = places.podState(name), explain.ExplainPod
	case "node":
		ask = explain.ExplainNode
	}
	source.Search = whatif.Limits{Work: cmp.Or(f.work, -1), Accept: places.accept}
	var a explain.Answer
	err = term.withProgress("asking what becomes of nodes and pods", func() (err error) {
		sells := binpack.ResolveOfferings(source.Snapshot)
		source.View = status.ViewOf(source.Snapshot, source.Memory, sells)
		a, err = ask(source, name, sells)
		return err
	})
	if missing, ok := errors.AsType[*explain.NotFoundError](err); ok {
		return &inputError{missing}
	}
	if err != nil {
		return err
	}
	if a.WhatIf != nil {
		places.addPlaces(a.WhatIf.Changes)
		if !f.tried {
			a.WhatIf.Tried = nil
		}
	}
	return term.showAnswer(f.output, a, func() error { return showAnswer(term, a) })
}

// kindAsked returns the kind that the word names, empty for what cannot be explained.
func kindAsked(word string) string {
	switch strings.ToLower(word) {
	case "pod", "pods", "po":
		return "pod"
	case "node", "nodes", "no", "nodeclaim", "nodeclaims":
		return "node"
	case "nodepool", "nodepools", "pool":
		return "nodepool"
	}
	return ""
}

func showAnswer(term terminalOutput, a explain.Answer) error {
	out := term.paintText(a.Subject, text.Bold) + ": " + a.Verdict + "\n" + wrapText(a.Why...) + whatIfText(a.WhatIf)
	if len(a.Past) > 0 {
		out += "decided before:\n" + wrapText(a.Past...)
	}
	return term.writeText(out)
}

// wrapText is sentences of the answer, each in as many lines as it needs.
func wrapText(all ...string) (out string) {
	for _, s := range all {
		out += "  " + strings.ReplaceAll(text.WrapSoft(s, width), "\n", "\n    ") + "\n"
	}
	return out
}

// whatIfText says what would change the answer. What is to be copied is not wrapped.
func whatIfText(a *whatif.Answer) (out string) {
	if a == nil {
		return ""
	}
	for _, c := range a.Changes {
		out += wrapText("would help: " + c.String())
		for _, e := range c.Edits {
			out += "    " + e.Place + "\n"
		}
	}
	if len(a.Changes) == 0 {
		out = wrapText(fmt.Sprintf("no change of one or two places would help (%d questions)", a.Questions))
	}
	if a.Unasked > 0 {
		out += wrapText(fmt.Sprintf("not asked for lack of work: %d; see --search-work", a.Unasked))
	}
	for _, e := range a.Tried {
		out += wrapText("does not help: " + e.String())
	}
	return out
}

// editPlaces tells where edits are made.
type editPlaces struct {
	get   func(path string) *unstructured.Unstructured // nil where there is none, or nobody may read it
	judge *crdcheck.Judge
}

// newEditPlaces reads each object once. Whether the API server takes a NodePool it does not know yet.
func newEditPlaces(ctx context.Context, l clusterLink) editPlaces {
	read := map[string]*unstructured.Unstructured{}
	return editPlaces{get: func(path string) *unstructured.Unstructured {
		if _, known := read[path]; !known {
			o, found, err := l.kube.Objects.Get(ctx, path)
			if read[path] = o; !found || err != nil {
				read[path] = nil
			}
		}
		return read[path]
	}}
}

// pod reads the pod namespace/name, as far as anybody can tell.
func (s editPlaces) pod(key string) (p corev1.Pod) {
	namespace, name, _ := strings.Cut(key, "/")
	if o := s.read("Pod", namespace, name); o != nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p) // as far as it goes
	}
	return p
}

// podState is the state of the pod namespace/name; the zero value where nobody can tell.
func (s editPlaces) podState(key string) explain.PodState {
	p := s.pod(key)
	out := explain.PodState{Scheduler: p.Spec.SchedulerName, Fargate: translate.OnFargate(&p),
		Phase: string(p.Status.Phase), Cause: p.Status.Reason, NodeName: p.Spec.NodeName}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			out.Resize = fmt.Sprintf("%s (%s)", c.Reason, c.Message)
		}
	}
	return out
}

// podMakers are the paths of pods and of what makes them, by kind.
func podMakers() map[string]string {
	return map[string]string{"Pod": "/api/v1/namespaces/%s/pods/%s",
		"ReplicaSet":  "/apis/apps/v1/namespaces/%s/replicasets/%s",
		"Deployment":  "/apis/apps/v1/namespaces/%s/deployments/%s",
		"StatefulSet": "/apis/apps/v1/namespaces/%s/statefulsets/%s",
		"Job":         "/apis/batch/v1/namespaces/%s/jobs/%s",
		"CronJob":     "/apis/batch/v1/namespaces/%s/cronjobs/%s"}
}

// read reads a pod, or what makes pods, of a kind that has a path.
func (s editPlaces) read(kind, namespace, name string) *unstructured.Unstructured {
	return s.get(fmt.Sprintf(podMakers()[kind], url.PathEscape(namespace), url.PathEscape(name)))
}

// mostOwners bounds how far the owners of a pod are followed, which may go in a circle.
const mostOwners = 5

// makerOf is the kind and the name of what makes the pod in the end, as far as it can be read, and the path of its pod
// template.
func (s editPlaces) makerOf(namespace, pod string) (kind, name string, template []string) {
	kind, name = "Pod", pod
	o := s.read(kind, namespace, name)
	for range mostOwners {
		if o == nil || metav1.GetControllerOfNoCopy(o) == nil {
			break
		}
		kind, name = metav1.GetControllerOfNoCopy(o).Kind, metav1.GetControllerOfNoCopy(o).Name
		_, known := podMakers()[kind]
		if !known || kind == "Pod" {
			break // nobody knows where it has its template, and a pod has none
		}
		if template = []string{"spec", "template"}; kind == "CronJob" {
			template = []string{"spec", "jobTemplate", "spec", "template"}
		}
		o = s.read(kind, namespace, name)
	}
	return kind, name, template
}

// accept reports whether the API server takes the NodePool, by its CRD.
func (s editPlaces) accept(p cluster.Pool) bool {
	var o karpv1.NodePool
	o.APIVersion, o.Kind = karpv1.GroupVersion().String(), "NodePool"
	o.Name, o.Spec.Template.Labels = p.Name, p.Labels
	o.Spec.Template.Spec.Requirements = translate.ClaimRequirements(p.Requirements)
	o.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass",
		Name: p.Class}
	body, _ := json.Marshal(o) // what cannot be written is not taken either
	v, _, err := s.judge.Judge(o.APIVersion, o.Kind, body)
	return err == nil && len(v.Refused) == 0
}

// addPlaces says of each edit how it is made.
func (s editPlaces) addPlaces(all []whatif.Change) {
	for i := range all {
		for j := range all[i].Edits {
			e := &all[i].Edits[j]
			if e.Place = s.placeOf(*e); e.Kind == "Pod" {
				p := s.pod(e.Namespace + "/" + e.Name)
				placeRequest(e, &p.Spec)
			}
		}
	}
}

// placeOf is the command that makes the edit, or the object and the path where one line of a command cannot, or the API
// server takes no change.
func (s editPlaces) placeOf(e whatif.Edit) string {
	kind, name, template := e.Kind, e.Name, []string(nil)
	switch e.Kind {
	case whatif.KindSetting:
		return fmt.Sprintf("cdk.json: context.%s = %s", e.Name, e.To)
	case whatif.KindEC2:
		return "AWS account: " + e.Name
	case "Pod":
		kind, name, template = s.makerOf(e.Namespace, e.Name)
	}
	fixed := kind == "Job" || kind == "Pod" && !strings.HasPrefix(e.Field, "metadata.annotations")
	patch, ok := e.MergePatch(template...)
	if _, known := podMakers()[kind]; !ok || fixed || e.Kind == "Pod" && !known {
		where := strings.Join(append(slices.Clone(template), e.Field), ".")
		return "manifest of " + whatif.Edit{Kind: kind, Namespace: e.Namespace, Name: name}.Object() + ": " + where
	}
	place := "kubectl patch " + strings.ToLower(kind) + " " + name
	if e.Namespace != "" {
		place += " -n " + e.Namespace
	}
	return place + " --type=merge -p '" + strings.ReplaceAll(patch, "'", `'\''`) + "'"
}
