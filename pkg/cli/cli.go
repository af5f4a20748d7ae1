package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"joiner.sh/pkg/model/version"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFault  = 1 // something went wrong that is not the input's fault
	exitUnused = 2 // input that cannot be used
	exitFound  = 3 // the command did its work and found what it looks for: problems, or a difference
)

// inputError is a fault of what the user gave.
type inputError struct{ error }

func (e *inputError) Unwrap() error { return e.error }

// foundError says that a check found something; the command has said what.
type foundError struct{ what string }

func (e *foundError) Error() string { return e.what }

const rootHelp = `Joiner adds nodes to an EKS cluster and removes them, without a pod in it. This program shows what it does and would do.

Results go to standard output, messages and progress to standard error. Exit codes: 0 done, 1 something went wrong, 2 the input cannot be
used, 3 a check found problems.`

// Run executes the command in args and returns the exit code. Results go to out, messages and progress to progress. An
// interrupt ends the command.
func Run(args []string, out, progress io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	term := newScreen(out, progress)
	root := &cobra.Command{
		Use: "joiner", Short: "Nodes for an EKS cluster, without a pod in it", Long: rootHelp,
		SilenceErrors: true, SilenceUsage: true, Version: version.Number,
	}
	root.AddCommand(planCommand(term), convertCommand(term), replayCommand(term), shadowCommand(term), explainCommand(term),
		statusCommand(term), doctorCommand(term), migrateCommand(term), rolloutCommand(term), acceptCommand(term, os.Stdin), forgetCommand(term, os.Stdin),
		deployCommand(term, os.Stdin), templateCommand(term), manifestsCommand(term), versionCommand(term))
	root.SetArgs(args)
	root.SetOut(term.out)
	root.SetErr(term.progress)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &inputError{err} })
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*foundError](err); ok {
		term.writeMessage("%v", err)
		return exitFound
	}
	term.writeMessage("%s: %v", ran.CommandPath(), err)
	if _, ok := errors.AsType[*inputError](err); ok || ran == root { // an unknown command ends at root
		term.writeMessage("See %s --help.", ran.CommandPath())
		return exitUnused
	}
	return exitFault
}

// outputForm is the form of an answer, one of those that its command knows.
type outputForm struct {
	form  string
	forms []string
}

func (o *outputForm) String() string { return o.form }

// Type returns the help's name of the value.
func (o *outputForm) Type() string { return "string" }

// Set takes a form that the command knows.
func (o *outputForm) Set(form string) error {
	if !slices.Contains(o.forms, form) {
		return fmt.Errorf("use %s", listAlternatives(o.forms))
	}
	o.form = form
	return nil
}

// outputFlag adds --output with the forms that a command knows, the first of which is the default.
func outputFlag(cmd *cobra.Command, into *outputForm, forms ...string) {
	*into = outputForm{forms[0], forms}
	cmd.Flags().VarP(into, "output", "o", listAlternatives(forms))
	// the flag exists
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// listAlternatives says a list as people do: a, b or c.
func listAlternatives(all []string) string {
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// noArgs refuses arguments, with a hint at the flag that is meant.
func noArgs(hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return &inputError{fmt.Errorf("%q is not expected; %s", args[0], hint)}
		}
		return nil
	}
}
