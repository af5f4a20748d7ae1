package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/migrate"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/scheduling/binpack"
)

// migrateFlags are the flags of `joiner migrate`.
type migrateFlags struct {
	clusterTarget
	back, apply bool
	values      string
	output      outputForm
}

const migrateHelp = `Report what a cluster that Karpenter or Cluster Autoscaler runs needs before Joiner takes it over, or with --back what it needs before
Karpenter takes it over again. No node is replaced either way: NodeClaims, finalizers, hashes and instance tags are the same.

It reads how Karpenter was started, from the environment and arguments of its Deployment and from --values, and prints the lines for
cdk.json that make Joiner do the same, what has no such line, and what closed feature gates keep asleep.

--apply makes the changes that the report lists: taints and marks of disruptions that nobody finishes, holds, missing finalizers. It touches
no pod and no instance. It is refused while Karpenter leads the cluster, and with --back while Joiner works.

Exit code 0: nothing stands in the way. 3: something does.`

func migrateCommand(term terminalOutput) *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use: "migrate", Short: "Move a cluster from Karpenter or Cluster Autoscaler to Joiner, or back",
		Long: migrateHelp, Args: noArgs("see --help"),
		Example: "  joiner migrate\n  joiner migrate --apply\n  joiner migrate --back",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runMigrate(cmd.Context(), f, term) },
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&f.back, "back", false, "from Joiner to Karpenter")
	cmd.Flags().StringVar(&f.values, "values", "", "values of Karpenter's Helm chart, over what its Deployment says")
	cmd.Flags().BoolVar(&f.apply, "apply", false, "make the changes of the report")
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runMigrate(ctx context.Context, f migrateFlags, term terminalOutput) error {
	l, err := f.connectCluster()
	if err != nil {
		return err
	}
	s, err := f.readSnapshot(ctx, term, l)
	if err != nil {
		return err
	}
	var facts migrate.Facts
	err = term.withProgress("looking for other autoscalers", func() (err error) {
		facts, err = migrationFacts(ctx, l, s, term)
		return err
	})
	if err != nil {
		return unreachableHint(l, err)
	}
	if f.values != "" {
		data, err := readFile(f.values)
		if err == nil {
			err = facts.Options.AddValues(data)
		}
		if err != nil {
			return &inputError{fmt.Errorf("%s: %w", f.values, err)}
		}
	}
	var r migrate.Report
	err = term.withProgress("looking at every NodeClaim", func() error {
		if r = migrate.ReportBack(facts); !f.back {
			r = migrate.ReportTo(facts, binpack.ResolveOfferings(s))
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = term.showAnswer(f.output, r, func() error {
		showReport(term, r)
		return nil
	})
	if err == nil && f.apply {
		err = f.applyEdits(ctx, l, facts, r, term)
	}
	if err != nil {
		return err
	}
	if !r.IsReady() {
		return &foundError{"something stands in the way, see above"}
	}
	return nil
}

// migrationFacts reads what the snapshot does not hold.
func migrationFacts(ctx context.Context, l clusterLink, s cluster.Snapshot, term terminalOutput) (migrate.Facts, error) {
	var denied []string
	from := storedObjects{l, &denied}
	f := migrate.Facts{Snapshot: s}
	leader := from.readLeader(ctx)
	if f.Leader = leader.Holder; leader.Unknown != "" {
		return f, errors.New(leader.Unknown + "; without knowing who leads nothing is said")
	}
	var karpenter map[string]any
	if err := from.forEach(ctx, atDeployments, func(o *unstructured.Unstructured) {
		if container := noteController(&f, o); container != nil {
			karpenter = container
		}
	}); err != nil {
		return f, err
	}
	if karpenter != nil {
		var err error
		if f.Options, err = from.readController(ctx, f.Karpenter.Namespace, karpenter); err != nil {
			return f, err
		}
	}
	err := errors.Join(
		from.forEach(ctx, atBuffers, func(o *unstructured.Unstructured) {
			f.Buffers = append(f.Buffers, o.GetNamespace()+"/"+o.GetName())
		}),
		from.forEach(ctx, atCRDs, func(o *unstructured.Unstructured) { noteCRD(&f, o) }),
		from.forEach(ctx, atLeases, func(o *unstructured.Unstructured) { noteLease(&f, o) }),
		from.forEach(ctx, atClaims, func(o *unstructured.Unstructured) {
			if kind, _, _ := unstructured.NestedString(o.Object, "spec", "nodeClassRef",
				"kind"); kind != "EC2NodeClass" {
				f.Foreign = append(f.Foreign, o.GetName())
			}
		}),
		from.forEach(ctx, atPools, func(o *unstructured.Unstructured) {
			noteAnnotations(&f, karpv1.NodePoolKind, o)
			if o.GetAnnotations()[karpv1.AnnotationKubeletConversion] != "" {
				f.Kubelets = append(f.Kubelets, o.GetName())
			}
		}),
		from.forEach(ctx, atClasses, func(o *unstructured.Unstructured) {
			noteAnnotations(&f, awsv1.EC2NodeClassKind, o)
			if role, _, _ := unstructured.NestedString(o.Object, "spec", "role"); role != "" {
				f.Roles = append(f.Roles, role)
			}
		}),
		from.forEach(ctx, atPods, func(o *unstructured.Unstructured) {
			if o.GetAnnotations()["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false" {
				f.Pinned = append(f.Pinned, o.GetNamespace()+"/"+o.GetName())
			}
		}),
	)
	for _, what := range denied {
		term.writeMessage("not looked at: you may not %s", what)
	}
	slices.Sort(f.Pinned)
	slices.Sort(f.Roles)
	f.Roles = slices.Compact(f.Roles)
	return f, err
}

// noteController keeps a Deployment that is Karpenter or Cluster Autoscaler by the image it runs. It returns Karpenter's
// container, or nil.
func noteController(f *migrate.Facts, o *unstructured.Unstructured) (karpenter map[string]any) {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		one, _ := c.(map[string]any)
		image, _ := one["image"].(string)
		image, _, _ = strings.Cut(image, "@")
		name, version := image, ""
		if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
			name, version = image[:i], image[i+1:]
		}
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		found := &migrate.Controller{Namespace: o.GetNamespace(), Name: o.GetName(), Version: version,
			Replicas: replicas}
		switch {
		case strings.HasSuffix(name, "karpenter/controller"), strings.HasSuffix(name, "/karpenter"):
			f.Karpenter, karpenter = found, one
		case strings.HasSuffix(name, "/cluster-autoscaler"):
			f.Autoscaler = found
		}
	}
	return karpenter
}

func noteCRD(f *migrate.Facts, o *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	if group != "karpenter.sh" && group != "karpenter.k8s.aws" {
		return
	}
	stored, _, _ := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
	how, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
	f.CRDs = append(f.CRDs, migrate.CRD{Name: o.GetName(), Stored: stored, Webhook: how == "Webhook"})
}

// noteLease notes who of Joiner's functions works at this moment.
func noteLease(f *migrate.Facts, o *unstructured.Unstructured) {
	if holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity"); holder != "" && f.Joiner == "" &&
		isFresh(o) {
		f.Joiner = o.GetName() + ": " + holder
	}
}

// noteAnnotations notes the annotations of joiner.sh on a NodePool or an EC2NodeClass, apart those that Joiner wrote.
func noteAnnotations(f *migrate.Facts, kind string, o *unstructured.Unstructured) {
	var people, own []string
	for _, k := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
		switch {
		case slices.Contains(migrate.WrittenKeys(), k):
			own = append(own, k)
		case strings.HasPrefix(k, "joiner.sh/"):
			people = append(people, k)
		}
	}
	if len(people) > 0 && kind == karpv1.NodePoolKind {
		f.Annotations = append(f.Annotations, migrate.Annotated{Pool: o.GetName(), Keys: people})
	}
	if len(own) > 0 {
		f.Written = append(f.Written, migrate.Written{Kind: kind, Name: o.GetName(), Keys: own})
	}
}

func showReport(term terminalOutput, r migrate.Report) {
	fmt.Fprintf(term.out, "nodes are run by %s; %d of them go on as they are\n\n", r.From, r.Nodes)
	colour := map[findings.Level]text.Color{findings.Blocks: text.FgRed, findings.Change: text.FgYellow,
		findings.Note: text.Faint}
	for _, x := range r.Findings {
		fmt.Fprintf(term.out, "%s %s: %s\n", term.paintText(fmt.Sprintf("%-6s", x.Level), colour[x.Level]), x.About, x.What)
		if x.Mend != "" {
			fmt.Fprintf(term.out, "       mend: %s\n", x.Mend)
		}
	}
	for _, g := range r.Groups {
		fmt.Fprintf(term.out, "\n# node group %s, %d nodes\n%s", g.Name, g.Nodes, g.Pool)
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(term.out)
	}
	if len(r.Settings) > 0 {
		showSettings(term, r.Settings)
	}
	for i, step := range r.Steps {
		fmt.Fprintf(term.out, "%d. %s\n", i+1, step)
	}
}

// showSettings writes the lines as they go into the context of cdk.json.
func showSettings(term terminalOutput, lines []migrate.SettingLine) {
	fmt.Fprintln(term.out, "for the context of cdk.json, as Karpenter is set:")
	for _, l := range lines {
		value, _ := json.Marshal(l.Value) // a text, a number or a truth
		fmt.Fprintf(term.out, "  %q: %s,\n", l.Name, value)
	}
	fmt.Fprintln(term.out)
}
