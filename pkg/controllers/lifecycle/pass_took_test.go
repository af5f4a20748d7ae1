package lifecycle_test

import (
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// In a storm passes take long: what would be too late in the pass after the next is done now, so that a pod gets all of
// the grace period that it asks for.
func TestSlowPassesDeletePodsInTime(t *testing.T) {
	w := controllertest.NewWorld()
	pod := controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000))
	pod.GraceSec = 60
	w.RunApp("web", 1, pod)
	f := &controllertest.Functions{World: w}
	f.Rest(t, 4)
	w.ProtectApp("web", 1)
	p := w.Ports(fake.Fault{})
	claim, err := p.AnnotateClaim(t.Context(), w.Claims()[0], map[string]string{
		api.AnnotationTerminationTimestamp: w.Now().Add(110 * time.Second).UTC().Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteClaim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	began, passes := w.Now(), 0
	var deleted time.Duration
	p = w.Ports(fake.Fault{})
	p.Before = func(call string) {
		switch call {
		case "list instances":
			passes++
			w.SkipTime(15 * time.Second)
		case "delete pod":
			deleted = w.Now().Sub(began)
		}
	}
	if err := f.Lifecycle(p).Run(t.Context(), began.Add(50*time.Second)); err != nil {
		t.Fatal(err)
	}
	if deleted == 0 || deleted > 35*time.Second {
		t.Errorf("the pod was deleted after %s in %d passes, and has 60 s of grace 110 s before the deadline", deleted, passes)
	}
	s, err := w.Ports(fake.Fault{}).ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Pods {
		if want := began.Add(deleted + time.Minute); !p.Deleting.Equal(want) {
			t.Errorf("pod %s ends at %s, want a minute after its deletion, %s", p.Key(), p.Deleting, want)
		}
	}
}
