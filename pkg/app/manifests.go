package app

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner.sh/pkg/settings"
)

// awaitManifests makes patience of an error that manifests of somebody else will end: where the setting manifests is
// external, a kind that the API server does not know, or a right that it does not give, may come with the next
// synchronization. What is scheduled tries again anyway. An event is no such thing: it is tried again as an error.
func awaitManifests(a *App, err error) error {
	if a.set.Manifests != settings.ManifestsExternal || !lacksManifests(err) {
		return err
	}
	a.log.Warn("waits for manifests: apply what joiner manifests of this version prints", "reason", err)
	return nil
}

// lacksManifests reports whether all that went wrong is that the API server knows a kind not, or refuses.
func lacksManifests(err error) bool {
	// Each of the joined errors is looked at.
	if all, joined := err.(interface{ Unwrap() []error }); joined {
		return !slices.ContainsFunc(all.Unwrap(), func(one error) bool { return !lacksManifests(one) })
	}
	if inner := errors.Unwrap(err); inner != nil {
		return lacksManifests(inner)
	}
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}
