package setup

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner.sh/pkg/install"
)

// applyPriority has the API server serve our functions beside whoever else keeps it busy. One that knows no such
// objects, before Kubernetes 1.29, serves them as everybody else.
func (s *Setup) applyPriority(ctx context.Context) (made int, err error) {
	all, err := install.Priority()
	if err != nil {
		return 0, err
	}
	for _, o := range all {
		if err := s.applyObject(ctx, o); apierrors.IsNotFound(err) {
			s.Log.Warn("the API server is older than 1.29: the functions share its priority with everybody", "error", err)
			return 0, nil
		} else if err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// removePriority removes what applyPriority made, the schemas before their levels. What somebody else installed stays.
func (s *Setup) removePriority(ctx context.Context) error {
	if s.External {
		return nil
	}
	all, err := install.Priority()
	if err != nil {
		return err
	}
	slices.Reverse(all)
	for _, o := range all {
		path, err := ObjectPath(o)
		if err != nil {
			return err
		}
		if err := s.Cluster.Delete(ctx, path); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
