package cluster

import (
	"fmt"
	api "joiner.sh/pkg/api/v1"
	"strconv"
	"strings"
)

// Batch is a CreateFleet request that several claims share, as AnnotationLaunchBatch of each names it.
type Batch struct {
	ID   string
	Size int // claims, of which some may be gone by now
}

// String is the value of the annotation.
func (b Batch) String() string {
	if b.ID == "" {
		return ""
	}
	return fmt.Sprintf("%s/%d", b.ID, b.Size)
}

// Batch returns the batch that the claim is launched with; ok is false for a claim that is launched on its own.
func (c Claim) Batch() (b Batch, ok bool) {
	id, size, found := strings.Cut(c.Annotations[api.AnnotationLaunchBatch], "/")
	n, err := strconv.Atoi(size)
	if !found || id == "" || err != nil || n < 1 {
		return Batch{}, false
	}
	return Batch{id, n}, true
}
