// Package joiner adds Joiner for an EKS cluster to a CDK app. Start with NewCluster. It knows how a CDK app calls
// Joiner; what is in the stack the package infra/stack knows.
//
// The functions are assets. ClusterProps.Functions names the folder with those of the release whose version your go.mod
// requires; in a clone, go run ./infra/release -functions -out functions makes it.
package joiner

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"

	"joiner.sh/infra/stack"
	settingsfile "joiner.sh/pkg/settings"
)

// ClusterProps says which EKS cluster gets nodes, and how.
type ClusterProps struct {
	// ClusterName is the name of the EKS cluster, as plain text. Of a cluster that the same app makes it is the name
	// that the app gives it, and Cluster.Stack depends on the stack of that cluster.
	ClusterName string
	// Functions is the folder with <arch>/<function>.zip or <arch>/<function>/bootstrap; empty: .local/dist, where
	// make package leaves them. The setting architecture says which arch.
	Functions string
	// Settings are those of infra/settings.md by name: text, numbers, truth values, lists of text. What is not here
	// has its default.
	Settings map[string]any
}

// Cluster holds the constructs of one cluster.
type Cluster struct {
	// Stack has all resources. Its outputs name the roles of the nodes and of the functions, and the version.
	Stack awscdk.Stack
}

// NewCluster adds a stack of its own for the cluster to an app, a stage or a stack. The error names every setting that
// is wrong or unknown, or the function that has not been built; then nothing has been added. Clusters of one account
// and region share the concurrency of its functions: add those together, with NewClusters.
func NewCluster(scope constructs.Construct, props ClusterProps) (Cluster, error) {
	all, err := NewClusters(scope, props)
	if err != nil {
		return Cluster{}, err
	}
	return all[0], nil
}

// NewClusters adds a stack for each cluster, in the order given, as NewCluster does.
func NewClusters(scope constructs.Construct, clusters ...ClusterProps) ([]Cluster, error) {
	if len(clusters) == 0 {
		return nil, errors.New("add clusters: there are none")
	}
	entries := make([]any, 0, len(clusters))
	for _, c := range clusters {
		settings, err := c.contextValues()
		if err != nil {
			return nil, err
		}
		entries = append(entries, settings)
	}
	all, err := stack.FromSettings(map[string]any{"clusters": entries})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].DistFolder = clusters[i].Functions
	}
	return addStacks(scope, all)
}

// NewClustersFromContext adds the stacks that the context of the app describes, as cdk.json and -c give it.
func NewClustersFromContext(app awscdk.App) ([]Cluster, error) {
	return NewClustersFromFiles(app, Files{})
}

// Files names the folder and the file that are read where the context of an app says nothing.
type Files struct {
	Functions string // as of ClusterProps
	Settings  string // a JSON file with an object of settings, beside those of the context; empty: none
}

// NewClustersFromFiles adds the stacks that the context of the app and a file of settings describe together.
func NewClustersFromFiles(app awscdk.App, from Files) ([]Cluster, error) {
	context, err := stack.ReadContext(app.Node())
	if err != nil {
		return nil, err
	}
	if from.Settings != "" {
		if context, err = addSettingsFile(context, from.Settings); err != nil {
			return nil, err
		}
	}
	all, err := stack.FromSettings(context)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].DistFolder = from.Functions
	}
	return addStacks(app, all)
}

// addSettingsFile returns the context with the settings of a file.
func addSettingsFile(context map[string]any, name string) (map[string]any, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	file, err := settingsfile.DecodeFile(name, text)
	if err != nil {
		return nil, err
	}
	return stack.MergeSettings(context, file, name)
}

func addStacks(scope constructs.Construct, all []stack.Props) ([]Cluster, error) {
	now := time.Now().UTC().Format(time.RFC3339)
	out := make([]Cluster, 0, len(all))
	for _, props := range all {
		if props.Stack.Deployment == "" {
			props.Stack.Deployment = now
		}
		made, err := stack.New(scope, props)
		if err != nil {
			return nil, err
		}
		out = append(out, Cluster{Stack: made})
	}
	return out, nil
}

// contextValues returns the settings in the form that cdk.json has.
func (c ClusterProps) contextValues() (map[string]any, error) {
	settings := maps.Clone(c.Settings)
	if settings == nil {
		settings = map[string]any{}
	}
	if name := "clusterName"; c.ClusterName != "" {
		if _, twice := settings[name]; twice {
			return nil, fmt.Errorf("cluster %s: Settings has %s, which a field of ClusterProps says", c.ClusterName, name)
		}
		settings[name] = c.ClusterName
	}
	text, err := json.Marshal(settings) // whole numbers and lists of text become what JSON has
	if err != nil {
		return nil, fmt.Errorf("cluster %s: encode settings: %w", c.ClusterName, err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("cluster %s: decode settings: %w", c.ClusterName, err)
	}
	return out, nil
}
