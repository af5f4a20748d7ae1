package stack_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/infra/stack"
)

// TestMain ends the JavaScript side of CDK after the last test.
func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	if placeholderFolder != "" {
		_ = os.RemoveAll(placeholderFolder) // of the temporary folder, which others clear too
	}
	os.Exit(code)
}

var placeholderFolder string

// placeholders is a dist folder with a placeholder for each function: the template does not depend on what is in them.
// All tests share it, so that equal settings have one template.
func placeholders(t *testing.T) string {
	t.Helper()
	if placeholderFolder != "" {
		return placeholderFolder
	}
	dist, err := os.MkdirTemp("", "joiner-stack")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"arm64", "amd64"} {
		for _, f := range []string{"provision", "lifecycle", "disrupt", "refresh", "spotinterruption", "reservationinterruption",
			"rebalance", "scheduledchange", "statechange", "preflight", "setup", "wake"} {
			dir := filepath.Join(dist, arch, f)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "bootstrap"), []byte(arch+f), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	placeholderFolder = dist
	return dist
}

// synth makes the stack from a context as cdk.json would give it.
func synth(t *testing.T, context map[string]any) (awscdk.Stack, error) {
	t.Helper()
	all, err := synthAll(t, context)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// synthAll makes the stacks of a context; its distFolder, which is no setting, has the functions.
func synthAll(t *testing.T, context map[string]any) ([]awscdk.Stack, error) {
	t.Helper()
	context = maps.Clone(context)
	dist, _ := context["distFolder"].(string)
	delete(context, "distFolder")
	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, AnalyticsReporting: jsii.Bool(false)})
	clusters, err := stack.FromContext(app.Node())
	if err != nil {
		return nil, err
	}
	var out []awscdk.Stack
	for _, props := range clusters {
		props.DistFolder = dist
		s, err := stack.New(app, props)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// synthesized are templates by context, as JSON.
var synthesized = map[string]assertions.Template{}

// mustSynth is the template of a context, which is made once.
func mustSynth(t *testing.T, context map[string]any) assertions.Template {
	t.Helper()
	key, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	if have, ok := synthesized[string(key)]; ok {
		return have
	}
	s, err := synth(t, context)
	if err != nil {
		t.Fatal(err)
	}
	synthesized[string(key)] = assertions.Template_FromStack(s, nil)
	return synthesized[string(key)]
}
