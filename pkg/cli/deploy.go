package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/release"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// deployFlags are the flags of `joiner deploy`.
type deployFlags struct {
	releaseFlags
	yes  bool
	more []string // for cdk deploy
}

const deployHelp = `Create or update the stack of a cluster from an unpacked release, with the CDK command line of npm and nothing else: no Go, no make and no
clone. The settings are those of cdk.json in the release, and of a file of yours:

  {"clusterName": "prod", "mode": "observe"}

It checks that each file is the one of the release, and that the settings make a template, before it changes anything. Then it runs, and
prints, npx aws-cdk@2 bootstrap where account and region lack it, and npx aws-cdk@2 deploy, of the template, which it leaves in cdk.out of
the release. What stands after -- is handed to cdk deploy. npx aws-cdk@2 destroy --app cdk.out deletes the stack.`

func deployCommand(term terminalOutput, in io.Reader) *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "deploy", Short: "Create or update the stack from an unpacked release", Long: deployHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args = args[:n]
			}
			return noArgs("name the cluster with --cluster, or the settings with --settings")(cmd, args)
		},
		Example: "  ./joiner deploy --cluster prod\n  ./joiner deploy --settings joiner.json --yes\n  ./joiner deploy --cluster prod -- --no-rollback",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.more = args
			return f.runDeploy(cmd.Context(), term, in)
		},
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask before permissions are widened")
	return cmd
}

// deployment is one run of `joiner deploy`.
type deployment struct {
	folder releaseFolder
	flags  deployFlags
	sc     terminalOutput
	in     io.Reader
}

func (f deployFlags) runDeploy(ctx context.Context, term terminalOutput, in io.Reader) error {
	folder, err := f.openFolder()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("npx"); err != nil {
		return &inputError{errors.New("the program npx is not on the PATH: install Node.js 20 or newer with npm")}
	}
	for _, word := range f.more {
		if word == "-c" || strings.HasPrefix(word, "--context") {
			return &inputError{fmt.Errorf("%s comes too late: the template is made of cdk.json and --settings; write the setting there", word)}
		}
	}
	stacks, err := folder.synthesize(ctx, term, f.releaseFlags, filepath.Join(folder.path, assemblyFolder))
	if err != nil {
		return err
	}
	d := deployment{folder: folder, flags: f, sc: term, in: in}
	term.writeMessage("cd %s", folder.path)
	if err := d.prepareAccounts(ctx, stacks); err != nil {
		return err
	}
	return d.runCDK(ctx, d.deployWords(len(stacks))...)
}

// deployWords are the words after npx aws-cdk@2 that deploy so many stacks.
func (d deployment) deployWords(stacks int) []string {
	words := []string{"deploy", "--app", assemblyFolder}
	if stacks > 1 {
		words = append(words, "--all")
	}
	if d.flags.yes {
		words = append(words, "--require-approval", "never")
	}
	return append(words, d.flags.more...)
}

// runCDK prints a command and runs it in the folder. What it writes goes to the messages: it is no result.
func (d deployment) runCDK(ctx context.Context, words ...string) error {
	words = append([]string{"npx", "aws-cdk@2"}, words...)
	d.sc.writeMessage("%s", quoteWords(words))
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir, c.Stdin = d.folder.path, d.in
	c.Stdout, c.Stderr = withoutFilter(d.sc.progress), withoutFilter(d.sc.progress) // the CDK draws on terminals
	if err := c.Run(); err != nil {
		hint := ""
		if !d.flags.yes { // the CDK says that it cannot ask, and not how to do without
			hint = "; where no terminal is to ask at, add --yes"
		}
		return fmt.Errorf("%s: %w: what it printed says why%s", strings.Join(words[:3], " "), err, hint)
	}
	return nil
}

// quoteWords are words as a shell takes them.
func quoteWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`&|;<>()*?[]{}~#!") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// prepareAccounts bootstraps each account and region that lacks what the CDK needs there, and prepares stacks that are
// there.
func (d deployment) prepareAccounts(ctx context.Context, stacks []release.Stack) error {
	cfg, err := loadAWSConfig(ctx)
	if err != nil {
		return fmt.Errorf("load aws configuration: %w", err)
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("find out which account the credentials are of: %w: nothing was deployed; aws sts get-caller-identity must work first", err)
	}
	done := map[string]bool{}
	for _, s := range stacks {
		account, region := cmp.Or(s.Account, aws.ToString(who.Account)), cmp.Or(s.Region, cfg.Region)
		if region == "" {
			return &inputError{errors.New("no region is known: set AWS_REGION, or region in the settings")}
		}
		place := "aws://" + account + "/" + region
		if account != aws.ToString(who.Account) {
			d.sc.writeMessage("stack %s is of account %s, the credentials of %s: if the deployment says that it is not bootstrapped, run npx aws-cdk@2 bootstrap %s there",
				s.Name, account, aws.ToString(who.Account), place)
			continue
		}
		at := cfg.Copy()
		at.Region = region
		if err := d.prepareStack(ctx, at, s); err != nil {
			return err
		}
		if done[place] {
			continue
		}
		done[place] = true
		lacks, err := lacksBootstrap(ctx, at, s)
		if err == nil && lacks {
			err = d.runCDK(ctx, "bootstrap", place, "--app", assemblyFolder)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lacksBootstrap reports whether the account and region of a stack have nothing of the CDK yet.
func lacksBootstrap(ctx context.Context, cfg aws.Config, s release.Stack) (bool, error) {
	if s.BootstrapParameter == "" {
		return false, nil
	}
	_, err := ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &s.BootstrapParameter})
	if awserrors.IsMissing(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether region %s is bootstrapped for the CDK: %w", cfg.Region, err)
	}
	return false, nil
}

// unprotect lets the CDK delete a stack that did not come into being, which it does before it makes it anew: it protects
// a stack before it makes anything of it.
func (d deployment) unprotect(ctx context.Context, cfg aws.Config, s release.Stack, there describedStack) error {
	d.sc.writeMessage("stack %s is %s, so that nothing of it works: it is deleted and made anew", s.Name, there.Status)
	if !there.Protected {
		return nil
	}
	_, err := askStacks(ctx, cfg, "UpdateTerminationProtection", map[string]string{"StackName": s.Name, "EnableTerminationProtection": "false"})
	if err != nil {
		return fmt.Errorf("take the protection from stack %s, which did not come into being: %w; delete that stack, and deploy again", s.Name, err)
	}
	return nil
}

// prepareStack says what becomes of a stack that is there, and takes out of the way what would keep it from that.
func (d deployment) prepareStack(ctx context.Context, cfg aws.Config, s release.Stack) error {
	there, err := describeStack(ctx, cfg, s.Name)
	if err != nil || there.Status == "" {
		return err
	}
	if there.Status == "ROLLBACK_COMPLETE" || there.Status == "ROLLBACK_FAILED" {
		return d.unprotect(ctx, cfg, s, there)
	}
	made := "of a version that it does not name"
	for _, o := range there.Outputs {
		if o.OutputKey == "Version" {
			made = "of version " + o.OutputValue
			if o.OutputValue == version.Number {
				return nil
			}
		}
	}
	d.sc.writeMessage("stack %s is %s and becomes %s: CHANGELOG.md says what changes", s.Name, made, version.Number)
	return nil
}
