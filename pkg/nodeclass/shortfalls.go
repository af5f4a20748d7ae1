package nodeclass

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

const (
	mostWitnesses = 2   // of a type: so many are believed
	mostShort     = 400 // observations of a class, the oldest go; one takes about 150 bytes
)

// observedShortfalls is the content of the annotation.
type observedShortfalls struct {
	Of   string             `json:"of"` // drift hash of the class and hash of its images
	Seen []shortObservation `json:"seen"`
}

type shortObservation struct {
	instancetypes.Observation
	At time.Time `json:"at"`
}

// ObserveShortfalls adds what nodes of the class have less of for pods than they were launched for to what the class
// remembers of its present spec and images, for 60 days. It returns the annotation, and whether it is another than
// before.
func ObserveShortfalls(c *awsv1.EC2NodeClass, claims []cluster.Claim, nodes []cluster.Node,
	now time.Time) (annotation string, news bool) {
	m := recallShortfalls(c)
	m.Seen = slices.DeleteFunc(m.Seen, func(o shortObservation) bool { return now.Sub(o.At) >= memoryHolds })
	perType := map[string]int{}
	for _, o := range m.Seen {
		perType[o.Type]++
	}
	for _, node := range (cluster.Snapshot{Claims: claims, Nodes: nodes}).StateNodes() {
		o, short := node.Shortfall()
		known := func(k shortObservation) bool { return k.Instance == o.Instance }
		if !short || node.Claim.Class != c.Name || !hasParameter(c, node.Claim.ImageID) ||
			perType[o.Type] == mostWitnesses ||
			node.Claim.Annotations[awsv1.AnnotationHash] != c.Annotations[awsv1.AnnotationHash] ||
			slices.ContainsFunc(m.Seen, known) {
			continue
		}
		perType[o.Type]++
		m.Seen = append(m.Seen, shortObservation{o, now.UTC().Truncate(time.Second)})
	}
	slices.SortStableFunc(m.Seen, func(a, b shortObservation) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Instance, b.Instance))
	})
	m.Seen = m.Seen[:min(len(m.Seen), mostShort)]
	if len(m.Seen) == 0 {
		return "", c.Annotations[v1.AnnotationObservedShortfalls] != ""
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", false
	}
	return string(text), string(text) != c.Annotations[v1.AnnotationObservedShortfalls]
}

// recallShortfalls returns what the class remembers, if it is of its present spec and images.
func recallShortfalls(c *awsv1.EC2NodeClass) (m observedShortfalls) {
	of := c.Annotations[awsv1.AnnotationHash] + "/" + imagesHash(c)
	if json.Unmarshal([]byte(c.Annotations[v1.AnnotationObservedShortfalls]), &m) != nil || m.Of != of {
		return observedShortfalls{Of: of}
	}
	return m
}

// shortfallsOf returns the observations of the class with which types are to be resolved.
func shortfallsOf(c *awsv1.EC2NodeClass) []instancetypes.Observation {
	if c.Annotations[v1.AnnotationObservedShortfalls] == "" {
		return nil
	}
	return lists.Of(recallShortfalls(c).Seen,
		func(o shortObservation) instancetypes.Observation { return o.Observation })
}
