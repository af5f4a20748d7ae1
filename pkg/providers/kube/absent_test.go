package kube_test

import (
	"net/http"
	"testing"
)

// A cluster that does not know overlays or buffers has none. That is not so when it may not be asked.
func TestKindsThatAClusterDoesNotKnow(t *testing.T) {
	absent, _ := server(t, http.StatusNotFound)
	c := client(t, absent.URL, nil)
	if got, err := c.ListOverlays(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("overlays %v, error %v", got, err)
	}
	if got, err := c.ListBuffers(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("buffers %v, error %v", got, err)
	}
	if s, stored, err := c.ReadOfferingInputs(t.Context()); len(stored)+len(s.Pools)+len(s.Classes) != 0 || err != nil {
		t.Errorf("shelves %v, error %v", s, err)
	}
	forbidden, _ := server(t, http.StatusForbidden)
	c = client(t, forbidden.URL, nil)
	if _, err := c.ListOverlays(t.Context()); err == nil {
		t.Error("overlays that may not be read are none")
	}
	if _, err := c.ListBuffers(t.Context()); err == nil {
		t.Error("buffers that may not be read are none")
	}
}
