package kube_test

import (
	"errors"
	"net/http"
	"testing"

	"joiner.sh/pkg/providers/kube"
)

// A cluster that does not know NodeRollouts has none. Where they may not be read the list says so, and asks no more
// often than where there are none.
func TestListRolloutsThatMayNotBeRead(t *testing.T) {
	absent, _ := server(t, http.StatusNotFound)
	if got, err := client(t, absent.URL, nil).Rollouts.ListRollouts(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("%v, error %v", got, err)
	}
	forbidden, asked := server(t, http.StatusForbidden)
	c := client(t, forbidden.URL, nil)
	for range 3 {
		got, err := c.Rollouts.ListRollouts(t.Context())
		if f, ok := errors.AsType[*kube.ForbiddenError](err); len(got) != 0 || !ok || !f.Forbidden() {
			t.Errorf("%v, error %v", got, err)
		}
	}
	if len(*asked) != 1 {
		t.Errorf("%d requests", len(*asked))
	}
}
