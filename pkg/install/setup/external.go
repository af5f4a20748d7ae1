package setup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner.sh/pkg/install"
)

// mend says what to do about manifests that are missing or older.
const mend = "apply what joiner manifests of this version prints"

// CheckManifests says what the cluster lacks of the objects that somebody else installs, or has otherwise than the
// functions need, a sentence each; nothing where all is there. It changes nothing.
func (s *Setup) CheckManifests(ctx context.Context) ([]string, error) {
	err := s.reachCluster(ctx)
	if apierrors.IsForbidden(err) {
		return []string{"the cluster gives setup no rights: ClusterRole joiner-setup or its binding is missing"}, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := install.External()
	if err != nil {
		return nil, err
	}
	if s.Push.URL != "" && !s.Observe {
		push, err := install.Push(s.Push)
		if err != nil {
			return nil, err
		}
		all = append(all, push)
	}
	var lacks []string
	for _, want := range all {
		path, err := ObjectPath(want)
		if err != nil {
			return nil, err
		}
		if want.GetKind() == "Namespace" && len(s.Sleep) > 0 {
			want.SetAnnotations(s.Sleep)
		}
		what := want.GetKind() + " " + want.GetName()
		if namespace := want.GetNamespace(); namespace != "" {
			what += " in " + namespace
		}
		have, found, err := s.Cluster.Get(ctx, path)
		switch {
		case apierrors.IsForbidden(err):
			lacks = append(lacks, what+" cannot be read: ClusterRole joiner-setup is older")
			continue
		case err != nil:
			return nil, err
		case !found:
			lacks = append(lacks, what+" is missing")
			continue
		}
		// The path alone is said: the address of push is a secret.
		if at := install.FirstDifference(want.Object, have.Object); at != "" {
			lacks = append(lacks, fmt.Sprintf("%s is older or changed, at %s", what, at))
		}
	}
	s.linkSpot(ctx)
	for _, line := range lacks {
		s.Log.Warn("manifests: "+line, "mend", mend)
	}
	return lacks, nil
}

// DescribeManifests is CheckManifests as one text that fits into an answer to CloudFormation.
func DescribeManifests(lacks []string) string {
	const named = 8
	if len(lacks) == 0 {
		return "complete"
	}
	text := ""
	for _, line := range lacks[:min(named, len(lacks))] {
		text += "; " + line
	}
	if more := len(lacks) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "incomplete: " + mend + text
}
