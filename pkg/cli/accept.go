package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/accept"
)

// acceptFlags are the flags of `joiner accept`.
type acceptFlags struct {
	doctorFlags
	like, stack, fis string
	instances        []string
	mostUSD          float64
	yes, clean       bool
	questions        bool
}

const acceptHelp = `Play the main job once in a real cluster and account: pods that wait get nodes, fewer pods need fewer nodes, a spot notice has a node
replaced, and everything is removed. It says first what it makes and what that costs at most, and asks.

It makes a NodePool and an EC2NodeClass of its own, the class like one of yours, and ten pods in a namespace of its own. It refuses to
begin where Joiner only observes, while the stack is being deployed, and where pods of others could go onto its nodes.

The spot notice is what EC2 writes, given to the function with your credentials; rule, pattern and policy are looked at. With --fis ROLE the
AWS Fault Injection Service has EC2 send a real one for that one instance; the role must allow ec2:SendSpotInstanceInterruptions.

With --questions it asks the account instead what no document settles, in a small stack of its own, without Joiner and without a cluster.

What AWS answers is kept in a folder, redacted as by joiner doctor --record. After an interruption, --clean removes what there is.

Exit code 0: all of it worked and nothing is left. 3: something did not, or it refused to begin.`

func acceptCommand(term terminalOutput, in io.Reader) *cobra.Command {
	var f acceptFlags
	cmd := &cobra.Command{
		Use: "accept", Short: "Play the main job once in a real account, with a notice, and clean up", Long: acceptHelp,
		Args:    noArgs("see --help"),
		Example: "  joiner accept --cluster prod\n  joiner accept --cluster prod --clean\n  joiner accept --questions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (f.cluster == "") != f.questions {
				return &inputError{errors.New("name the cluster with --cluster; --questions needs none")}
			}
			return f.runAccept(cmd.Context(), term, in)
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "name of the EKS cluster")
	cmd.Flags().StringVar(&f.prefix, "name-prefix", "", "the setting namePrefix that the stack is deployed with")
	cmd.Flags().StringVar(&f.stack, "stack", "", "name of the stack, if it is not the usual one")
	cmd.Flags().StringVar(&f.like, "like", "", "EC2NodeClass that the run's own is like; without it the first that is ready")
	cmd.Flags().StringSliceVar(&f.instances, "instance-types", accept.SmallTypes(), "what may be launched, of 2 vCPU each")
	cmd.Flags().Float64Var(&f.mostUSD, "max-usd", 1, "what an hour of the nodes may cost at most, in USD")
	cmd.Flags().StringVar(&f.fis, "fis", "", "ARN of a role with which AWS FIS sends a real spot notice")
	cmd.Flags().StringVar(&f.folder, "record", "", "folder for what AWS answers; without it joiner-accept-ID")
	cmd.Flags().BoolVar(&f.clean, "clean", false, "remove what an interrupted run left")
	cmd.Flags().BoolVar(&f.questions, "questions", false, "ask the account what no document settles, in a small stack of its own")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func (f acceptFlags) runAccept(ctx context.Context, term terminalOutput, in io.Reader) error {
	run := accept.Run{Cluster: f.cluster, ID: accept.NewID(f.cluster, time.Now()), FIS: f.fis}
	if f.folder == "" {
		f.folder = "joiner-accept-" + run.ID
	}
	var err error
	if f.record, err = startRecording(f.folder); err != nil {
		return err
	}
	if f.questions {
		return f.runQuestions(ctx, term, in, run.ID)
	}
	w, err := f.openWorld(ctx, run)
	if err != nil {
		return err
	}
	p := acceptPlayer{world: w, tell: term.writeMessage}
	if f.clean {
		if err := f.confirm(term, in, "remove everything that runs of joiner accept left in cluster "+f.cluster); err != nil {
			return err
		}
		if err := p.clean(ctx); err != nil {
			return err
		}
		return term.writeText("nothing is left\n")
	}
	notice, err := f.prepare(ctx, term, w)
	if err != nil {
		return err
	}
	if err := f.confirm(term, in, "begin"); err != nil {
		return err
	}
	if w.before, err = w.Inventory(ctx); err != nil {
		return err
	}
	if err := p.run(ctx, f.cluster, notice); err != nil {
		return err
	}
	return term.writeText(fmt.Sprintf("accepted: pods got nodes, fewer pods fewer nodes%s, and nothing is left. Answers of AWS: %s\n",
		map[bool]string{true: ", a notice a replacement"}[notice], f.folder))
}

// prepare looks whether the run may begin, and says what it will make. Notice is whether there is a function for it.
func (f acceptFlags) prepare(ctx context.Context, term terminalOutput, w *liveWorld) (notice bool, err error) {
	load, err := f.readCatalogLoudly(ctx, term)
	if err != nil {
		return false, err
	}
	nodes, dearest, err := accept.LimitNodes(load, f.instances, f.mostUSD)
	if err != nil {
		return false, &inputError{err}
	}
	w.run.Types, w.run.Nodes = f.instances, nodes
	var facts accept.Facts
	err = term.withProgress("looking at cluster and account", func() (err error) {
		facts, err = w.readFacts(ctx, f.stack)
		return err
	})
	if err != nil {
		return false, unreachableHint(w.l, err)
	}
	why := accept.Refusals(facts, w.run)
	like, err := accept.ChooseClass(facts.Classes, f.like)
	if err != nil {
		why = append(why, err.Error())
	}
	for _, line := range why {
		fmt.Fprintf(term.out, "%s %s\n", term.paintText("refused:", warningColour), line)
	}
	if len(why) > 0 {
		return false, &foundError{fmt.Sprintf("%d reasons not to begin; nothing was made", len(why))}
	}
	w.run.Like, w.run.Spec = like.Name, like.Spec
	for _, fn := range facts.Functions {
		notice = notice || fn.Found && fn.Name == f.names().Function(noticeFunction)
	}
	if !notice {
		term.writeMessage("there is no function %s: no notice is sent", f.names().Function(noticeFunction))
	}
	return notice, term.writeText(w.run.Describe(dearest))
}

// noticeFunction is the function that takes spot notices.
const noticeFunction = "spotinterruption"

// confirm asks whether to go on, unless --yes says so.
func (f acceptFlags) confirm(term terminalOutput, in io.Reader, what string) error {
	if f.yes {
		return nil
	}
	return confirmByName(term, in, f.cluster, what)
}

// confirmByName has somebody type the name of what is about to be changed.
func confirmByName(term terminalOutput, in io.Reader, name, what string) error {
	term.writeMessage("Type %s to %s:", name, what)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return nil
	}
	if err != nil {
		return &inputError{errors.New("nobody answered; --yes goes on without asking")}
	}
	return &inputError{errors.New("that is another name; nothing was done")}
}
