package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/cli/recording"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/findings"
)

// doctorFlags are the flags of `joiner doctor`.
type doctorFlags struct {
	clusterTarget
	cluster string
	prefix  string
	output  outputForm
	all     bool

	beforeDeploy     bool
	template, folder string
	record           *recording.Recorder // nil: nothing is recorded
}

const apiTimeout = 10 * time.Second

const doctorHelp = `Look for what keeps Joiner from its work, or makes it work worse than it could, and say how to mend each: API server, EKS, Lambda
functions, access entries, CRDs, RBAC, Karpenter's leader lease, EC2NodeClasses with their subnets and security groups, NodePools, spot
service-linked role, quotas, DRA drivers, pods without requests. Nothing is changed.

With --cluster the AWS account is asked too, with the credentials of the environment. What could not be looked at is said to be unknown.

With --before-deploy only what the stack's own preflight asks is asked, of AWS alone: whether a deployment with the settings of cdk.json, as
npx aws-cdk@2 synth wrote them, would get through. Everything that is wrong is said at once.

With --record DIR what AWS answers is kept in DIR, one file a call, to be sent with a report: account numbers, public addresses, certificates,
names of users, and values of tags and of environment variables are replaced. Look through the files before you send them.

Exit code 0: no problem. 3: there is one. Warnings alone leave it 0.`

func doctorCommand(term terminalOutput) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the cluster and the AWS account for problems and suggest fixes", Long: doctorHelp,
		Args:    noArgs("see --help"),
		Example: "  joiner doctor\n  joiner doctor --cluster prod --all\n  npx aws-cdk@2 synth --quiet && joiner doctor --cluster prod --before-deploy",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.cluster == "" && (f.beforeDeploy || f.folder != "") {
				return &inputError{errors.New("--before-deploy and --record ask AWS: name the cluster with --cluster")}
			}
			if f.folder != "" {
				if f.record, err = startRecording(f.folder); err != nil {
					return err
				}
			}
			return runDoctor(cmd.Context(), f, term)
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "name of the EKS cluster; without it AWS is not asked")
	cmd.Flags().StringVar(&f.prefix, "name-prefix", "", "the setting namePrefix that the stack is deployed with")
	cmd.Flags().BoolVar(&f.all, "all", false, "also show what is fine")
	cmd.Flags().BoolVar(&f.beforeDeploy, "before-deploy", false, "check what the preflight of a deployment checks")
	cmd.Flags().StringVar(&f.template, "template", "cdk.out", "template of the stack, or the folder that the CDK wrote it to")
	cmd.Flags().StringVar(&f.folder, "record", "", "keep what AWS answers in this folder, redacted")
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runDoctor(ctx context.Context, f doctorFlags, term terminalOutput) error {
	found, err := f.examine(ctx, term)
	if err != nil {
		return err
	}
	err = term.showAnswer(f.output, asChecks(found), func() error {
		showFindings(term, found, f.all)
		return nil
	})
	if err != nil {
		return err
	}
	return problemError(found)
}

// examine makes the checks that the flags ask for.
func (f doctorFlags) examine(ctx context.Context, term terminalOutput) (found findings.List, err error) {
	if f.beforeDeploy {
		err = term.withProgress("looking at cluster and account", func() (err error) {
			found, err = f.checkBeforeDeploy(ctx)
			return err
		})
		return found, err
	}
	l, err := f.connectCluster()
	if err != nil {
		return nil, err
	}
	var facts doctor.Facts
	err = term.withProgress("looking at cluster and account", func() (err error) {
		facts, err = f.gatherFacts(ctx, l)
		return err
	})
	if err != nil {
		return nil, unreachableHint(l, err)
	}
	return doctor.RunChecks(facts), nil
}

// problemError is an error when there is a problem.
func problemError(all findings.List) error {
	if n := all.Count(findings.Broken); n > 0 {
		return &foundError{fmt.Sprintf("%d problems, %d warnings, %d unknown", n, all.Count(findings.Warning),
			all.Count(findings.Unknown))}
	}
	return nil
}

// gatherFacts asks everything. A cluster that does not answer is a fact, too.
func (f doctorFlags) gatherFacts(ctx context.Context, l clusterLink) (doctor.Facts, error) {
	out := doctor.Facts{Now: factsTime(), Cluster: f.cluster}
	out.API.Host = l.rest.Host
	version, err := serverVersion(ctx, l)
	if err != nil {
		out.API.Unknown = unreachableHint(l, err).Error()
		f.readAccount(ctx, &out, nil)
		return out, nil
	}
	out.API.Version = version
	s := storedObjects{l, &out.API.Denied}
	if err := f.readCluster(ctx, s, &out); err != nil {
		return out, err
	}
	classes, chosen, err := s.readClasses(ctx)
	if err != nil {
		return out, err
	}
	out.Classes = classes
	f.readAccount(ctx, &out, chosen)
	return out, nil
}

// serverVersion asks what runs there, which everybody may who is known.
func serverVersion(ctx context.Context, l clusterLink) (string, error) {
	client, err := rest.HTTPClientFor(l.rest)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.rest.Host+"/version", nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusUnauthorized {
		return "", apierrors.NewUnauthorized("/version: " + answer.Status)
	}
	var v struct{ GitVersion string }
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s/version answers %s, which is no version of Kubernetes", l.rest.Host, answer.Status)
	}
	return v.GitVersion, nil
}

// readCluster asks the cluster.
func (f doctorFlags) readCluster(ctx context.Context, s storedObjects, out *doctor.Facts) error {
	crds, err := install.CRDs()
	if err != nil {
		return err
	}
	rbac, err := install.RBAC()
	if err != nil {
		return err
	}
	if out.CRDs, err = s.compareObjects(ctx, crds); err != nil {
		return err
	}
	if out.RBAC, err = s.compareObjects(ctx, rbac); err != nil {
		return err
	}
	unread := misannotated{}
	if out.Pods, out.Loose, err = s.podsWithoutRequests(ctx, unread.addPod); err != nil {
		return err
	}
	if err := unread.addNodes(ctx, s); err != nil {
		return err
	}
	out.Unread = unread.list()
	if out.Devices, err = s.devices(ctx); err != nil {
		return err
	}
	out.Leader = s.readLeader(ctx)
	if err := s.forEach(ctx, atClaims, func(o *unstructured.Unstructured) {
		out.Nodes++
		var c v1.NodeClaim
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c) == nil {
			out.Devices.Late = append(out.Devices.Late, lateNodes(out.Now, &c)...)
		}
	}); err != nil {
		return err
	}
	if out.Rollouts, err = s.readRollouts(ctx); err != nil {
		return err
	}
	out.Pools, err = s.readPools(ctx)
	return err
}

// checkOutcome is a finding as JSON and YAML of doctor have it.
type checkOutcome struct {
	Level findings.Level `json:"level"`
	About string         `json:"check"`
	What  string         `json:"what"`
	Mend  string         `json:"mend,omitempty"`
}

func asChecks(all findings.List) []checkOutcome {
	out := make([]checkOutcome, 0, len(all))
	for _, f := range all {
		out = append(out, checkOutcome(f))
	}
	return out
}

// showFindings prints what is amiss, and how to mend it below.
func showFindings(term terminalOutput, all findings.List, fine bool) {
	colour := map[findings.Level]text.Color{findings.Broken: text.FgRed, findings.Warning: text.FgYellow,
		findings.Unknown: text.Faint, findings.Fine: text.FgGreen}
	shown := 0
	for _, x := range all {
		if x.Level == findings.Fine && !fine {
			continue
		}
		shown++
		fmt.Fprintf(term.out, "%s %s: %s\n", term.paintText(fmt.Sprintf("%-7s", x.Level), colour[x.Level]), x.About,
			strings.ReplaceAll(x.What, "\n", " "))
		if x.Mend != "" {
			fmt.Fprintf(term.out, "        mend: %s\n", x.Mend)
		}
	}
	if shown == 0 {
		fmt.Fprintf(term.out, "%d checks, all is well\n", len(all))
	}
}
