package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/forget"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
)

// forgetFlags are the flags of `joiner forget`.
type forgetFlags struct {
	clusterTarget
	forget.Filter
	yes bool
}

const forgetHelp = `Drop what Joiner has learned: memory and room for pods that nodes reported, resources that they never had, types left out because their
nodes took no pods, and what EC2 refused. It says first what that is, and asks.

--class leaves what is about no EC2NodeClass, --type what is about all types. What nodes that still run report is learned again within
minutes: remove a node that reports something wrong first.

Nothing is launched, changed or ended. Doing it again is harmless.`

func forgetCommand(term terminalOutput, in io.Reader) *cobra.Command {
	var f forgetFlags
	cmd := &cobra.Command{
		Use: "forget", Short: "Drop what Joiner has learned from nodes and refusals", Long: forgetHelp,
		Args:    noArgs("name what to drop with --class and --type"),
		Example: "  joiner forget\n  joiner forget --class default --type m5.large\n  joiner forget --class default --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, what := range map[string]string{"class": "an EC2NodeClass", "type": "an instance type"} {
				if set := cmd.Flags().Lookup(flag); set.Changed && set.Value.String() == "" { // such as of a script
					return &inputError{fmt.Errorf("--%s is empty; name %s, or leave it out for all", flag, what)}
				}
			}
			return f.runForget(cmd.Context(), term, in)
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&f.Class, "class", "", "name of an EC2NodeClass; without it all of them")
	cmd.Flags().StringVar(&f.Type, "type", "", "instance type; without it all of them")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func (f forgetFlags) runForget(ctx context.Context, term terminalOutput, in io.Reader) error {
	l, err := f.connectCluster()
	if err != nil {
		return err
	}
	offerings := store.NewUnavailableOfferings(l.kube, time.Now)
	known := forget.Known{Now: time.Now()}
	if known.Classes, err = l.kube.ListClasses(ctx); err != nil {
		return unreachableHint(l, err)
	}
	if known.Unavailable, err = offerings.ListRemembered(ctx); err != nil {
		return unreachableHint(l, err)
	}
	load, err := f.readCatalogLoudly(ctx, term)
	if err != nil {
		return err
	}
	sold := func(name string) bool { _, there := load.Find(name); return there }
	if err := forget.CheckNames(known, f.Filter, sold); err != nil {
		return &inputError{err}
	}
	p := forget.PlanDrop(known, f.Filter)
	if len(p.Lines) == 0 {
		return term.writeText("nothing of that kind is remembered\n")
	}
	if err := term.writeText(strings.Join(p.Lines, "\n") + "\n"); err != nil {
		return err
	}
	if !f.yes {
		if err := confirmByName(term, in, cmp.Or(l.name, "yes"), "forget this"); err != nil {
			return err
		}
	}
	errs := []error{offerings.ForgetUnavailable(ctx, p.Unavailable)}
	for _, name := range p.Classes {
		errs = append(errs, forgetOfClass(ctx, l, name, f.Type))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	term.writeMessage("forgot %d things", len(p.Lines))
	return nil
}

// forgetOfClass takes what was learned of a type, or of all, off the class as it is now.
func forgetOfClass(ctx context.Context, l clusterLink, class, instanceType string) error {
	c, err := l.kube.ReadClass(ctx, class)
	if isNotFound(err) {
		return nil // with all that it carried
	}
	if err != nil {
		return err
	}
	set, remove := nodeclass.WithoutLearned(c, instanceType)
	return l.kube.PatchClassMeta(ctx, class, kube.MetaChange{Annotations: set, Remove: remove})
}
