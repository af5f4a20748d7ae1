// Package faults makes decisions fail on purpose, so that tests see that they go on without what they fail about. Start
// with Fault. It knows how a decision tells its stages and refuses to know what is decided.
package faults

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// Fault follows a decision and panics where all that it names fits.
type Fault struct {
	Stage string // where
	// pods that begin with this, as namespace/name, or the name of what else the stage is about; empty for any
	About string
	// only where such a pod is packed as well; empty for any
	Together string
	// a NodePool; empty for any
	Pool string
}

// FollowStage panics where the decision is to fail. Pods that run and may not be disrupted have been left out of it
// already, and are never what it fails about.
func (f *Fault) FollowStage(s cluster.Stage) {
	about := func(name string) bool { return strings.HasPrefix(name, f.About) }
	switch {
	case s.Name != f.Stage,
		f.About != "" && (s.DoNotDisrupt || !slices.ContainsFunc(s.About, about)),
		f.Together != "" && (s.Together == nil || !slices.Contains(s.Together(), f.Together)),
		f.Pool != "" && s.Pool != f.Pool:
		return
	}
	panic(fmt.Sprintf("planted at %s for %q in NodePool %q", f.Stage, f.About, f.Pool))
}
