package joiner_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/archive"
	"joiner.sh/infra/joiner"
	"joiner.sh/infra/stack"
)

// TestMain ends the JavaScript side of CDK after the last test.
func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// A CDK app of a company adds nodes to the cluster prod, which another stack of the app makes.
func ExampleNewCluster() {
	functions := builtFunctions()
	defer os.RemoveAll(functions)

	app := awscdk.NewApp(nil)
	prod := awscdk.NewStack(app, jsii.String("prod"), nil) // has the EKS cluster
	nodes, err := joiner.NewCluster(app, joiner.ClusterProps{
		ClusterName: "prod",
		Functions:   functions,
		Settings:    map[string]any{"mode": "observe", "logRetentionDays": 30, "tags": map[string]string{"team": "platform"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes.Stack.AddDependency(prod, jsii.String("the cluster has to be there"))
	fmt.Println(*nodes.Stack.StackName())
	template := *assertions.Template_FromStack(nodes.Stack, nil).ToJSON()
	fmt.Println(len(template["Outputs"].(map[string]any)) > 0)
	// Output:
	// joiner-prod
	// true
}

// builtFunctions stands for the functions of a release.
func builtFunctions() string {
	folder, err := os.MkdirTemp("", "functions-")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "arm64"), 0o755); err != nil {
		log.Fatal(err)
	}
	mains, err := filepath.Glob("../../functions/*/main.go")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range mains {
		name := filepath.Base(filepath.Dir(m))
		packed, err := archive.ZipFunction([]byte(name))
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "arm64", name+".zip"), packed, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	return folder
}

func TestSettingsAreChecked(t *testing.T) {
	app := awscdk.NewApp(nil)
	functions := builtFunctions()
	t.Cleanup(func() { os.RemoveAll(functions) })
	for want, props := range map[string]joiner.ClusterProps{
		"did you mean logRetentionDays?": {ClusterName: "a", Functions: functions, Settings: map[string]any{"logRetentionDay": 30}},
		"clusterName":                    {Functions: functions},
		"Settings has clusterName":       {ClusterName: "a", Functions: functions, Settings: map[string]any{"clusterName": "b"}},
		"build it first":                 {ClusterName: "a", Functions: t.TempDir()},
		"encode settings":                {ClusterName: "a", Functions: functions, Settings: map[string]any{"mode": func() {}}},
	} {
		if _, err := joiner.NewCluster(app, props); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if n := len(*app.Node().Children()); n > 0 {
		t.Errorf("%d constructs were added, want none", n)
	}
}

// Clusters of one account and region share its concurrency, and each may stand below a stack.
func TestClustersShareConcurrency(t *testing.T) {
	functions := builtFunctions()
	t.Cleanup(func() { os.RemoveAll(functions) })
	reserved := func(c joiner.Cluster) (n float64) {
		for _, r := range *assertions.Template_FromStack(c.Stack, nil).FindResources(jsii.String("AWS::Lambda::Function"), nil) {
			if p, ok := (*r)["Properties"].(map[string]any)["ReservedConcurrentExecutions"].(float64); ok {
				n += p
			}
		}
		return n
	}
	app := awscdk.NewApp(nil)
	alone, err := joiner.NewCluster(awscdk.NewStack(app, jsii.String("below"), nil), joiner.ClusterProps{ClusterName: "a", Functions: functions})
	if err != nil {
		t.Fatal(err)
	}
	both, err := joiner.NewClusters(awscdk.NewApp(nil), joiner.ClusterProps{ClusterName: "a", Functions: functions},
		joiner.ClusterProps{ClusterName: "b", Functions: functions, Settings: map[string]any{"interruptionConcurrency": 700}})
	if err != nil {
		t.Fatal(err)
	}
	if one, two := reserved(alone), reserved(both[0]); two >= one || two == 0 {
		t.Errorf("reserved for a cluster alone %v, beside another %v; want less", one, two)
	}
}

// synthesizedFrom is the template that an app of its own writes, with this context and these files.
func synthesizedFrom(t *testing.T, context map[string]any, from joiner.Files) (string, error) {
	t.Helper()
	props := stack.AppProps()
	props.Context, props.Outdir = &context, jsii.String(t.TempDir())
	app := awscdk.NewApp(props)
	if _, err := joiner.NewClustersFromFiles(app, from); err != nil {
		return "", err
	}
	app.Synth(nil)
	return read(t, filepath.Join(*props.Outdir, "joiner-prod.template.json")), nil
}

// A release has zips where a checkout has folders, and its user may write settings into a file: the template is the
// same byte for byte.
func TestZipsAndASettingsFileGiveTheSameTemplate(t *testing.T) {
	zips, folders := builtFunctions(), t.TempDir()
	t.Cleanup(func() { os.RemoveAll(zips) })
	all, err := filepath.Glob(filepath.Join(zips, "arm64", "*.zip"))
	if err != nil || len(all) < 10 {
		t.Fatalf("%d zips, %v", len(all), err)
	}
	for _, zip := range all {
		name := strings.TrimSuffix(filepath.Base(zip), ".zip")
		folder := filepath.Join(folders, "arm64", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "bootstrap"), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "joiner.json")
	text := `{"$schema": "settings.schema.json", "mode": "observe", "tags": {"team": "platform"}, "logRetentionDays": 30, "deployment": "1"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	checkout, err := synthesizedFrom(t, map[string]any{"clusterName": "prod", "mode": "observe", "tags": map[string]any{"team": "platform"},
		"logRetentionDays": 30, "deployment": "1"}, joiner.Files{Functions: folders})
	if err != nil {
		t.Fatal(err)
	}
	release, err := synthesizedFrom(t, map[string]any{"clusterName": "prod", "logRetentionDays": "30"}, joiner.Files{Functions: zips, Settings: file})
	if err != nil {
		t.Fatal(err)
	}
	if checkout != release {
		t.Errorf("they differ:\n%s", cmp.Diff(checkout, release))
	}
}

func TestSettingsFilesAreChecked(t *testing.T) {
	functions := builtFunctions()
	t.Cleanup(func() { os.RemoveAll(functions) })
	for text, want := range map[string]string{
		`{"mode": "act", "logRetentionDays": 3}`: "setting logRetentionDays: joiner.json says 3; cdk.json, -c or --cluster says 14: keep one of them\nsetting mode: joiner.json says act",
		`{"logRetentionDay": 30}`:                "did you mean logRetentionDays?",
		`{"tracesURL": "https://example.com"}`:   "there is no such setting any more",
		`["mode"]`:                               `want one JSON object, such as {"clusterName": "prod"}`,
		"":                                       "read settings: open",
	} {
		t.Chdir(t.TempDir())
		if text != "" {
			if err := os.WriteFile("joiner.json", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := synthesizedFrom(t, map[string]any{"clusterName": "prod", "mode": "observe", "logRetentionDays": 14}, joiner.Files{Functions: functions, Settings: "joiner.json"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}
