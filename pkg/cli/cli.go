// Package cli is Joiner's command line for people: the commands, their flags, what they print and how they exit.
//
// It knows files and terminals; every decision is made by the package that makes it in the functions too.
package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFault  = 1 // something went wrong that is not the input's fault
	exitUnused = 2 // input that cannot be used
)

// inputError is a fault of what the user gave.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// Run executes the command in args and returns the exit code: 0 when it did its work, 2 for input that cannot be used, 1 for
// everything else. Results go to out, messages and progress to progress.
func Run(args []string, out, progress io.Writer) int {
	root := &cobra.Command{
		Use: "joiner", Short: "Nodes for an EKS cluster, without a pod in it",
		SilenceErrors: true, SilenceUsage: true,
	}
	root.AddCommand(planCommand(out, progress))
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(progress)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &inputError{err} })
	ran, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(progress, "%s: %v\n", ran.CommandPath(), err)
	if _, ok := errors.AsType[*inputError](err); ok || ran == root { // an unknown command ends at root
		fmt.Fprintf(progress, "See %s --help.\n", ran.CommandPath())
		return exitUnused
	}
	return exitFault
}
