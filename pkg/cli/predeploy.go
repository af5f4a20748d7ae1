package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/cli/recording"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/settings"
)

// preflightType is the custom resource of a template that says what the stack makes.
const (
	preflightType = "Custom::JoinerPreflight"
	functionType  = "AWS::Lambda::Function"
)

// checkBeforeDeploy asks what the preflight of the stack will ask, and says what that will say.
func (f doctorFlags) checkBeforeDeploy(ctx context.Context) (findings.List, error) {
	properties, to, err := readPreflightProperties(f.template, f.cluster)
	if err != nil {
		return nil, &inputError{err}
	}
	cfg, err := f.awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	plan, _ := preflight.ReadPlan(properties, cfg.Region)
	plan.Cluster = f.cluster
	before, err := deployedPlan(ctx, lambda.NewFromConfig(cfg), f.names(), plan)
	if err != nil {
		return nil, err
	}
	facts, _, err := discovery.Preflight{EKS: eks.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
		EC2: ec2.NewFromConfig(cfg), Lambda: lambda.NewFromConfig(cfg)}.ReadFacts(ctx, plan)
	if err != nil {
		return nil, err
	}
	found := append(preflight.Check(plan, before, facts), doctor.CheckSecret(secretFacts(ctx, cfg, to.URL, to.Secret))...)
	found.AddFine(0, "preflight", "nothing keeps the stack from being deployed")
	return found, nil
}

// deployedPlan returns what the stack has made, nil when it was never deployed. It is all of the plan when its
// functions are there, since only the stack itself knows what it was deployed with.
func deployedPlan(ctx context.Context, c *lambda.Client, n naming.Names, plan preflight.StackPlan) (*preflight.StackPlan, error) {
	_, err := c.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{
		FunctionName: aws.String(n.Function("setup"))})
	switch {
	case awserrors.IsMissing(err):
		return nil, nil //nolint:nilnil // nothing was deployed, which is no error
	case err != nil:
		return nil, fmt.Errorf("look whether the stack is deployed: %w", err)
	}
	return &plan, nil
}

// templateResource holds the fields that are read of a resource of a template.
type templateResource struct {
	Type       string
	Properties map[string]any
}

// remoteWriteIn returns where the functions of a template will send metrics.
func remoteWriteIn(resources map[string]templateResource) (to settings.RemoteWrite) {
	for _, r := range resources {
		environment, _ := r.Properties["Environment"].(map[string]any)
		variables, _ := environment["Variables"].(map[string]any)
		if r.Type != functionType {
			continue
		}
		text := func(name string) string { value, _ := variables[name].(string); return value }
		if url := text("REMOTE_WRITE_URL"); url != "" {
			to = settings.RemoteWrite{URL: url, Secret: text("REMOTE_WRITE_SECRET")}
		}
	}
	return to
}

// readPreflightProperties finds what the stack of a cluster will tell its preflight, and where it will send
// metrics, in a template or in a folder of them as the synthesis writes it.
func readPreflightProperties(path, cluster string) (map[string]any, settings.RemoteWrite, error) {
	none := settings.RemoteWrite{}
	names := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(path, "*.template.json")); err != nil {
			return nil, none, err
		}
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, none, err
		}
		var template struct {
			Resources map[string]templateResource
		}
		if err := json.Unmarshal(text, &template); err != nil {
			return nil, none, fmt.Errorf("read template %s: %w", name, err)
		}
		for _, r := range template.Resources {
			if r.Type == preflightType && r.Properties["ClusterName"] == cluster {
				return r.Properties, remoteWriteIn(template.Resources), nil
			}
		}
	}
	return nil, none, fmt.Errorf("there is no template for cluster %s in %s: run npx aws-cdk@2 synth --quiet, which writes what cdk.json says", cluster, path)
}

// awsConfig returns the configuration with which AWS is asked; with --record what it answers is kept.
func (f doctorFlags) awsConfig(ctx context.Context) (aws.Config, error) {
	cfg, err := loadAWSConfig(ctx)
	if err != nil {
		return cfg, fmt.Errorf("load aws configuration: %w", err)
	}
	if f.record != nil { // afterwards, since a bundle of authorities of the environment goes into the client first
		f.record.Next = cfg.HTTPClient
		cfg.HTTPClient = f.record
	}
	return cfg, nil
}

// startRecording makes the folder of a recording. One that holds something is refused: two recordings in one would answer
// for each other.
func startRecording(folder string) (*recording.Recorder, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of the recording: %w", err)
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look into the folder of the recording: %w", err)
	}
	if len(there) > 0 {
		return nil, &inputError{fmt.Errorf("%s is not empty: name another folder with --record", folder)}
	}
	return &recording.Recorder{Folder: folder}, nil
}
