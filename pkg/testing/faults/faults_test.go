package faults_test

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/faults"
)

// A fault hits where all that it names fits, and nowhere else.
func TestFault(t *testing.T) {
	stage := func(edit func(*cluster.Stage)) cluster.Stage {
		s := cluster.Stage{Name: "open", About: []string{"team-b/evil-1"}, Pool: "cheap",
			Together: func() []string { return []string{"team-b/evil-1", "team-a/web-1"} }}
		edit(&s)
		return s
	}
	f := &faults.Fault{Stage: "open", About: "team-b/", Together: "team-a/web-1", Pool: "cheap"}
	for name, c := range map[string]struct {
		edit func(*cluster.Stage)
		want bool
	}{
		"all fits":             {func(*cluster.Stage) {}, true},
		"another stage":        {func(s *cluster.Stage) { s.Name = "place" }, false},
		"another pod":          {func(s *cluster.Stage) { s.About = []string{"team-a/web-1"} }, false},
		"nothing":              {func(s *cluster.Stage) { s.About = nil }, false},
		"was left out already": {func(s *cluster.Stage) { s.DoNotDisrupt = true }, false},
		"another pool":         {func(s *cluster.Stage) { s.Pool = "dear" }, false},
		"alone":                {func(s *cluster.Stage) { s.Together = func() []string { return s.About } }, false},
		"not packed":           {func(s *cluster.Stage) { s.Together = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := recover() != nil; got != c.want {
					t.Errorf("hit %t, want %t", got, c.want)
				}
			}()
			f.FollowStage(stage(c.edit))
		})
	}
}
