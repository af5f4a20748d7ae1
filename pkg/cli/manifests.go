package cli

import (
	"errors"
	"net/url"

	"github.com/spf13/cobra"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/version"
)

const manifestsHelp = `Print the CRDs, RBAC, admission policies and API priorities of this version as YAML, for Argo CD, Flux or kubectl apply. With the setting
manifests: external the stack installs none of them and has no admin policy: setup compares, its answer is the stack's output Manifests, and
the functions wait for what is missing. With trigger: push, --push adds the webhook; the address is the function URL of wake with the text of
the secret behind its slash, so keep the result as secret as that.

CRDs first, and apply them server-side: kubectl apply --server-side.`

func manifestsCommand(term terminalOutput) *cobra.Command {
	var push string
	cmd := &cobra.Command{
		Use: "manifests", Short: "Print what the cluster needs, as YAML for GitOps", Long: manifestsHelp,
		Args: noArgs("see --help"), Example: "  joiner manifests >joiner.yaml\n  joiner manifests | kubectl apply --server-side -f -",
		RunE: func(*cobra.Command, []string) error {
			text, err := manifestText(push)
			if err != nil {
				return err
			}
			return term.writeText("# Joiner " + version.Number + "\n" + text)
		},
	}
	cmd.Flags().StringVar(&push, "push", "", "https address that the webhook calls, with the secret path; without it no webhook")
	return cmd
}

func manifestText(push string) (string, error) {
	all, err := install.External()
	if err != nil {
		return "", err
	}
	if push != "" {
		if to, err := url.Parse(push); err != nil || to.Scheme != "https" || to.Host == "" || len(to.Path) < 2 {
			return "", &inputError{errors.New("--push is no https address with a path")}
		}
		webhook, err := install.Push(install.Address{URL: push, CA: install.AmazonRoots()})
		if err != nil {
			return "", err
		}
		all = append(all, webhook)
	}
	text, err := install.ManifestText(all)
	return string(text), err
}
