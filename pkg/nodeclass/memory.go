package nodeclass

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// memoryHolds is the time that a class keeps a type's memory, or a shortfall, that no node shows any more.
const memoryHolds = 60 * 24 * time.Hour

// observedMemories is the content of the annotation.
type observedMemories struct {
	Of    string                    `json:"of"` // hash of the images
	Types map[string]observedMemory `json:"types"`
}

// observedMemory is the memory that a node reported.
type observedMemory struct {
	MiB  int64  `json:"mib"`
	Seen string `json:"seen"` // day, as in 2026-11-22
}

// memoryTolerance is the part of what a claim was launched for by which its node's memory may differ and be believed.
const memoryTolerance = 10

// ObserveMemory adds what the registered nodes of the class report to what the class carries: of each type the lowest
// figure that was seen with one of the class's present images. The type is that of the claim, whatever the node says,
// and a figure that is a tenth off what the claim was launched for is not believed. It returns the annotation, and
// whether it is another than before.
func ObserveMemory(c *awsv1.EC2NodeClass, claims []cluster.Claim, nodes []cluster.Node,
	now time.Time) (annotation string, news bool) {
	m := recallMemories(c)
	for name, known := range m.Types {
		if seen, err := time.Parse(time.DateOnly, known.Seen); err != nil || now.Sub(seen) >= memoryHolds {
			delete(m.Types, name)
		}
	}
	byID := lists.Index(nodes, func(n cluster.Node) string { return n.ProviderID })
	today := now.UTC().Format(time.DateOnly)
	for _, claim := range claims {
		n, ok := byID[claim.ProviderID]
		name := claim.Labels[corev1.LabelInstanceTypeStable]
		if !ok || claim.ProviderID == "" || name == "" || claim.Class != c.Name ||
			!claim.Is(v1.ConditionRegistered) || !hasParameter(c, claim.ImageID) ||
			!memoryIsPlausible(n.Capacity.Memory, claim.Capacity.Memory) {
			continue
		}
		mib := n.Capacity.Memory / resources.MiB
		if known, ok := m.Types[name]; !ok || mib <= known.MiB {
			m.Types[name] = observedMemory{MiB: mib, Seen: today}
		}
	}
	if len(m.Types) == 0 {
		return "", c.Annotations[v1.AnnotationObservedMemory] != ""
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", false
	}
	return string(text), string(text) != c.Annotations[v1.AnnotationObservedMemory]
}

// memoryIsPlausible reports whether a node may have so much memory, in bytes, that was launched for so much.
func memoryIsPlausible(has, promised int64) bool {
	return has > 0 && has >= promised-promised/memoryTolerance && has <= promised+promised/memoryTolerance
}

// recallMemories returns what the class carries, if it is of its present images.
func recallMemories(c *awsv1.EC2NodeClass) observedMemories {
	m, of := observedMemories{}, imagesHash(c)
	if json.Unmarshal([]byte(c.Annotations[v1.AnnotationObservedMemory]), &m) != nil || m.Of != of || m.Types == nil {
		return observedMemories{Of: of, Types: map[string]observedMemory{}}
	}
	return m
}

// memoryByType is the memory in MiB by type that the class carries.
func memoryByType(c *awsv1.EC2NodeClass) map[string]int64 {
	if c.Annotations[v1.AnnotationObservedMemory] == "" {
		return nil
	}
	out := map[string]int64{}
	for name, known := range recallMemories(c).Types {
		out[name] = known.MiB
	}
	return out
}

func imagesHash(c *awsv1.EC2NodeClass) string {
	ids := lists.Of(c.Status.AMIs, func(a awsv1.AMI) string { return a.ID })
	slices.SortFunc(ids, cmp.Compare)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(ids), ",")))
	return hex.EncodeToString(sum[:8])
}

func hasParameter(c *awsv1.EC2NodeClass, image string) bool {
	return slices.ContainsFunc(c.Status.AMIs, func(a awsv1.AMI) bool { return a.ID == image })
}
