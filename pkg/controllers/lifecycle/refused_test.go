package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// While a claim cannot be written, what its step needs is read, and what its pool remembers of it is told, as seldom as
// the step is tried: in an invocation of a minute some seven times, and not in each pass.
func TestARefusedClaimIsNotWorkedOnInEachPass(t *testing.T) {
	for _, c := range []struct {
		refused, repeats string
		running          bool
	}{
		{"write status of claim", "record registrations", false},
		{"delete claim", "read snapshot", true},
	} {
		w := controllertest.NewWorld()
		f := &controllertest.Functions{World: w}
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		if c.running {
			f.Rest(t, 4)
			w.DeleteNodes()
		} else if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
			t.Fatal(err)
		}
		w.Advance(20 * time.Second)
		claim := w.Claims()[0].Name
		p := w.Ports(fake.Fault{})
		denied := errors.New(`admission webhook "policy" denied the request`)
		p.Deny = func(call, object string) error {
			if call == c.refused && object == claim {
				return denied
			}
			return nil
		}
		err := f.Lifecycle(p).Run(t.Context(), w.Now().Add(time.Minute))
		count := map[string]int{}
		for _, call := range p.Calls() {
			count[call]++
		}
		extra := 0
		if c.repeats == "read snapshot" {
			extra = count["wait"] + 1 // the cache of each pass
		}
		if got := count[c.repeats] - extra; !errors.Is(err, denied) || count["wait"] < 20 || got == 0 || got > 8 {
			t.Errorf("%s is refused: %d times %s in %d passes, error %v", c.refused, got, c.repeats, count["wait"], err)
		}
	}
}
