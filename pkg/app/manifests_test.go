package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/settings"
)

// Where somebody else installs the manifests, what they will bring is waited for, and everything else is an error.
func TestManifestsOfSomebodyElseAreAwaited(t *testing.T) {
	pools := schema.GroupResource{Group: "karpenter.sh", Resource: "nodepools"}
	refused := fmt.Errorf("list nodepools: %w", apierrors.NewForbidden(pools, "", errors.New("no")))
	unknown := fmt.Errorf("list nodepools: %w", apierrors.NewNotFound(pools, ""))
	other := errors.New("no capacity")
	for name, c := range map[string]struct {
		manifests string
		err       error
		waits     bool
	}{
		"a right that is missing":        {settings.ManifestsExternal, refused, true},
		"a kind that is missing":         {settings.ManifestsExternal, unknown, true},
		"both":                           {settings.ManifestsExternal, fmt.Errorf("pass: %w", errors.Join(refused, unknown)), true},
		"something else":                 {settings.ManifestsExternal, other, false},
		"something else beside it":       {settings.ManifestsExternal, errors.Join(refused, other), false},
		"a right that setup should give": {settings.ManifestsInstall, refused, false},
		"nothing":                        {settings.ManifestsExternal, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			a := &App{set: settings.Values{Manifests: c.manifests}, log: slog.New(slog.NewTextHandler(&said, nil))}
			got := awaitManifests(a, c.err)
			if c.waits != (got == nil && c.err != nil) || !c.waits && !errors.Is(got, c.err) || c.waits != strings.Contains(said.String(), "nodepools") {
				t.Errorf("error %v, said %q", got, said.String())
			}
		})
	}
}
