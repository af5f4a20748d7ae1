package accept

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

const (
	// Mark is the key of the label and of the tag that everything of a run carries.
	Mark = "joiner.sh/accept"
	// Name is the name of the namespace, the NodePool, the EC2NodeClass and the Deployment of a run. There is one at a
	// time in a cluster.
	Name = "joiner-accept"
	// Record is the ConfigMap in the namespace that holds what there was before the run.
	Record = "before"

	taintKey = "joiner-accept" // of no domain that stands for Joiner itself
	manyPods = 10
	fewPods  = 3
	// mostNodes bounds the nodes of a run whatever may be spent; leastNodes hold all pods, with one to replace another.
	mostNodes, leastNodes = 6, 5
	vcpusOfNode           = 2
)

// SmallTypes are the instance types of a run, all with 2 vCPU, unless others are named.
func SmallTypes() []string {
	return []string{"t3.medium", "t3a.medium", "t3.large", "t3a.large", "m5.large", "m6i.large", "m6a.large"}
}

// Run describes a run: its cluster, its mark and what it may launch.
type Run struct {
	Cluster string
	ID      string         // value of the mark, see NewID
	Types   []string       // instance types
	Nodes   int            // at most so many at once
	Like    string         // EC2NodeClass that its own one is like
	Spec    map[string]any // of that class
	FIS     string         // ARN of the role for a real notice; empty: one that the run writes itself
}

// Owner returns the prefix of the ids of all runs in a cluster.
func Owner(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return hex.EncodeToString(sum[:4]) + "-"
}

// NewID is the value of the mark: of this cluster and of this time. It fits a label.
func NewID(cluster string, now time.Time) string {
	return Owner(cluster) + now.UTC().Format("20060102-150405")
}

// LimitNodes returns the number of nodes that may run at once so that an hour of them costs at most mostUSD on demand,
// and the most that a node costs. An error says why a run is not possible.
func LimitNodes(load instancetypes.Catalog, types []string, mostUSD float64) (nodes int, dearest float64, err error) {
	for _, name := range types {
		facts, known := load.Find(name)
		switch {
		case !known || facts.OnDemandUSD <= 0:
			return 0, 0, fmt.Errorf("the price of %s is not known here: name other types with --instance-types", name)
		case facts.VCPU > vcpusOfNode:
			return 0, 0, fmt.Errorf("%s has %d vCPU: name types with %d, so that the pods need several nodes", name, facts.VCPU, vcpusOfNode)
		}
		dearest = max(dearest, facts.OnDemandUSD)
	}
	nodes = mostNodes
	if dearest > 0 {
		nodes = min(nodes, int(mostUSD/dearest))
	}
	if nodes < leastNodes {
		return 0, 0, fmt.Errorf("%d nodes of at most USD %.4f an hour cost more than USD %.2f: raise --max-usd, or name smaller types", leastNodes, dearest, mostUSD)
	}
	return nodes, dearest, nil
}

// Describe says what a run makes and what it costs at most.
func (r Run) Describe(dearest float64) string {
	return fmt.Sprintf(`This run makes, all with the label or tag %s=%s:
  in cluster %s: namespace %s with a Deployment of %d pods; NodePool and EC2NodeClass %s, the class like %s
  in AWS: at most %d spot instances at once of %s, with their volumes, interfaces and launch templates,
  and an instance profile where the class names a role
It costs at most USD %.2f an hour on demand (limits.nodes %d times USD %.4f); spot is cheaper, volumes come to cents.
It takes 20 to 40 minutes and removes everything. Nodes that outlive it expire an hour after their launch.
`, Mark, r.ID, r.Cluster, Name, manyPods, Name, r.Like, r.Nodes, strings.Join(r.Types, ", "), float64(r.Nodes)*dearest, r.Nodes, dearest)
}

func (r Run) object(apiVersion, kind string, spec map[string]any) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": Name, "labels": map[string]any{Mark: r.ID}}}
	if spec != nil {
		out["spec"] = spec
	}
	return out
}

// Namespace returns the namespace of the run's pods.
func (r Run) Namespace() map[string]any { return r.object("v1", "Namespace", nil) }

// BeforeMap keeps what there was before the run, for one that is interrupted.
func (r Run) BeforeMap(before string) map[string]any {
	out := r.object("v1", "ConfigMap", nil)
	out["metadata"] = map[string]any{"name": Record, "namespace": Name, "labels": map[string]any{Mark: r.ID}}
	out["data"] = map[string]any{"inventory": before, "fis": fmt.Sprint(r.FIS != "")}
	return out
}

// Class is the run's EC2NodeClass: the one that it is like, with the tag.
func (r Run) Class() map[string]any {
	spec := maps.Clone(r.Spec)
	tags, _ := spec["tags"].(map[string]any)
	if tags = maps.Clone(tags); tags == nil {
		tags = map[string]any{}
	}
	tags[Mark] = r.ID
	spec["tags"] = tags
	return r.object(awsv1.Group+"/v1", "EC2NodeClass", spec)
}

func in(key string, values ...string) map[string]any {
	return map[string]any{"key": key, "operator": "In", "values": toAny(values)}
}

func toAny(words []string) []any {
	out := make([]any, 0, len(words))
	for _, w := range words {
		out = append(out, w)
	}
	return out
}

// Pool is the run's NodePool.
func (r Run) Pool() map[string]any {
	return r.object(karpv1.Group+"/v1", karpv1.NodePoolKind, map[string]any{
		"limits": map[string]any{"nodes": fmt.Sprint(r.Nodes), "cpu": fmt.Sprint(vcpusOfNode * r.Nodes)},
		"disruption": map[string]any{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s",
			"budgets": []any{map[string]any{"nodes": "100%"}}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{Mark: r.ID}},
			"spec": map[string]any{
				"expireAfter": "1h", "terminationGracePeriod": "5m",
				"nodeClassRef": map[string]any{"group": awsv1.Group, "kind": "EC2NodeClass", "name": Name},
				"taints":       []any{map[string]any{"key": taintKey, "value": r.ID, "effect": "NoSchedule"}},
				"requirements": []any{in("node.kubernetes.io/instance-type", r.Types...),
					in(karpv1.LabelCapacityType, "spot"), in("kubernetes.io/os", "linux")},
			},
		},
	})
}

// Deployment makes so many pods that run on the run's nodes and nowhere else.
func (r Run) Deployment(replicas int) map[string]any {
	labels := map[string]any{"app": Name, Mark: r.ID}
	out := r.object("apps/v1", "Deployment", map[string]any{
		"replicas": int64(replicas),
		"selector": map[string]any{"matchLabels": map[string]any{"app": Name}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"terminationGracePeriodSeconds": int64(5),
				"nodeSelector":                  map[string]any{karpv1.LabelNodePool: Name},
				"tolerations":                   []any{map[string]any{"key": taintKey, "operator": "Equal", "value": r.ID, "effect": "NoSchedule"}},
				"containers": []any{map[string]any{"name": "pause", "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.9",
					"resources": map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "256Mi"}}}},
			},
		},
	})
	out["metadata"].(map[string]any)["namespace"] = Name
	return out
}

// Where the API server serves what a run makes.
const (
	AtNamespace  = "/api/v1/namespaces/" + Name
	AtRecord     = "/api/v1/namespaces/" + Name + "/configmaps/" + Record
	AtPods       = "/api/v1/namespaces/" + Name + "/pods"
	AtDeployment = "/apis/apps/v1/namespaces/" + Name + "/deployments/" + Name
	AtPool       = "/apis/" + karpv1.Group + "/v1/nodepools/" + Name
	AtClass      = "/apis/" + awsv1.Group + "/v1/ec2nodeclasses/" + Name
)

// sortedTexts are the words in their order, each once.
func sortedTexts(all []string) []string {
	out := slices.Clone(all)
	slices.Sort(out)
	return slices.Compact(out)
}
