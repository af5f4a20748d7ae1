package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/explain"
	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/disruption"
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

func explainCommand(sc terminalOutput) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use: "explain pod|node|nodepool NAME", Short: "Explain the state of a pod, a node or a NodePool",
		Long:      explainHelp,
		Example:   "  joiner explain pod web-5d9c -n shop\n  joiner explain node ip-10-0-1-2.ec2.internal --since 24h --catalog-bucket BUCKET\n  joiner explain nodepool general",
		ValidArgs: []string{"pod", "node", "nodepool"},
		RunE:      func(cmd *cobra.Command, args []string) error { return runExplain(cmd.Context(), f, args, sc) },
	}
	f.clusterTarget.addFlags(cmd)
	f.logRange.addFlags(cmd)
	cmd.Flags().StringArrayVarP(&f.files, "file", "f", nil, "log lines of the functions, several times")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "namespace of the pod")
	cmd.Flags().BoolVar(&f.tried, "tried", false, "list the changes that do not help, too")
	cmd.Flags().IntVar(&f.work, "search-work", whatif.DefaultWork,
		"work of the search for what would help: a question is 400, three more for each node and four for each pod that waits; 0 for none")
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runExplain(ctx context.Context, f explainFlags, args []string, sc terminalOutput) error {
	if len(args) == 1 && strings.Count(args[0], "/") == 1 { // as kubectl takes it
		args = strings.Split(args[0], "/")
	}
	if len(args) != 2 {
		return &inputError{errors.New("say what is to be explained: pod, node or nodepool, and its name")}
	}
	ask, err := f.questionKind(args[0], args[1])
	if err != nil {
		return &inputError{err}
	}
	l, err := f.connectCluster()
	if err != nil {
		return err
	}
	var source explain.Source
	if f.logRange.bucket = f.clusterTarget.bucket; f.since > 0 || len(f.files) > 0 {
		if source.Records, err = f.recordsOf(ctx, f.files, sc); err != nil {
			return err
		}
	}
	if source.Snapshot, err = f.readSnapshot(ctx, sc, l); err != nil {
		return err
	}
	source.Memory, err = store.NewDisruptionMemory[disruption.Memory](l.kube).ReadMemory(ctx)
	if err != nil {
		source.Memory = disruption.Memory{} // only says less about what disruption has in mind
	}
	places, err := newEditPlaces(ctx, l)
	if err != nil {
		return err
	}
	if isPod(args[0]) {
		source.Asked = places.podState(f.podKey(args[1]))
	}
	source.Search = whatif.Limits{Work: cmp.Or(f.work, -1), Accept: places.accept}
	var a explain.Answer
	err = sc.withProgress("asking what becomes of nodes and pods", func() (err error) {
		sells := binpack.ResolveOfferings(source.Snapshot)
		source.View = status.ViewOf(source.Snapshot, source.Memory, sells)
		a, err = ask(source, sells)
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
	return sc.showAnswer(f.output, a, func() error { return showAnswer(sc, a) })
}

// questionKind is what kind of thing is asked about.
func (f explainFlags) questionKind(kind, name string) (func(explain.Source, binpack.Offerings) (explain.Answer, error),
	error) {
	if isPod(kind) {
		return func(s explain.Source, m binpack.Offerings) (explain.Answer, error) {
			return explain.ExplainPod(s, f.podKey(name), m)
		}, nil
	}
	switch strings.ToLower(kind) {
	case "node", "nodes", "no", "nodeclaim", "nodeclaims":
		return func(s explain.Source, m binpack.Offerings) (explain.Answer, error) {
			return explain.ExplainNode(s, name, m)
		}, nil
	case "nodepool", "nodepools", "pool":
		return func(s explain.Source, m binpack.Offerings) (explain.Answer, error) {
			return explain.ExplainPool(s, name, m)
		}, nil
	}
	return nil, fmt.Errorf("%q cannot be explained; pod, node, nodeclaim and nodepool can", kind)
}

func isPod(kind string) bool {
	return slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind))
}

// podKey is the namespace and name of the pod.
func (f explainFlags) podKey(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return f.namespace + "/" + name
}

func showAnswer(sc terminalOutput, a explain.Answer) error {
	var b strings.Builder
	b.WriteString(sc.paintText(a.Subject, text.Bold) + ": " + a.Verdict + "\n")
	for _, why := range a.Why {
		b.WriteString("  " + strings.ReplaceAll(text.WrapSoft(why, width), "\n", "\n    ") + "\n")
	}
	for _, line := range whatIfLines(a.WhatIf) {
		b.WriteString(strings.ReplaceAll(text.WrapSoft(line, width), "\n", "\n    ") + "\n")
	}
	if len(a.Past) > 0 {
		b.WriteString("decided before:\n")
	}
	for _, p := range a.Past {
		b.WriteString("  " + strings.ReplaceAll(text.WrapSoft(p, width), "\n", "\n    ") + "\n")
	}
	return sc.writeText(b.String())
}

// whatIfLines say what would change the answer. What is to be copied is not wrapped.
func whatIfLines(a *whatif.Answer) (out []string) {
	if a == nil {
		return nil
	}
	for _, c := range a.Changes {
		out = append(out, "  would help: "+c.String())
		for _, e := range c.Edits {
			out = append(out, "    "+e.Place)
		}
	}
	if len(a.Changes) == 0 {
		out = append(out, fmt.Sprintf("  no change of one or two places would help (%d questions)", a.Questions))
	}
	if a.Unasked > 0 {
		out = append(out, fmt.Sprintf("  not asked for lack of work: %d; see --search-work", a.Unasked))
	}
	for _, e := range a.Tried {
		out = append(out, "  does not help: "+e.String())
	}
	return out
}
