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

	"joiner.sh/infra/joiner"
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

// builtFunctions stands for what joiner.sh/infra/release writes.
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
		zip := filepath.Join(folder, "arm64", filepath.Base(filepath.Dir(m))+".zip")
		if err := os.WriteFile(zip, []byte("PK"), 0o644); err != nil {
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
