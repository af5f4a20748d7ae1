package notices_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
	"joiner.sh/pkg/testing/syntax"
)

// TestEveryEventToEveryHandler feeds each sample of ours and of others to each handler, in a cluster that has none of
// the instances, and prints what is said of it and which calls that took.
func TestEveryEventToEveryHandler(t *testing.T) {
	all, err := events.ForeignEvents()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range events.AllKinds() {
		more, err := k.Samples()
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, more)
	}
	datadriven.RunTest(t, "testdata/events", func(t *testing.T, d *datadriven.TestData) string {
		if err := syntax.NewGrammar(nil, "handle KIND [ACCOUNT]").Check(d); err != nil {
			d.Fatalf(t, "%v", err)
		}
		var place notices.Location
		if len(d.CmdArgs) > 1 {
			place = notices.Location{Account: d.CmdArgs[1].Key, Region: "us-west-2"}
		}
		var out strings.Builder
		for _, name := range slices.Sorted(maps.Keys(all)) {
			said, calls, err := handled(events.Kind(d.CmdArgs[0].Key), all[name], place)
			if strings.HasPrefix(said, "ignored event") && !strings.HasPrefix(name, d.CmdArgs[0].Key+".") && calls == 0 && err == nil {
				continue // refused, as it should be
			}
			fmt.Fprintf(&out, "%s: %s; %d calls, error %v\n", name, said, calls, err)
		}
		return out.String()
	})
}

// handled is what the handler of the kind says of an event.
func handled(kind events.Kind, event []byte, place notices.Location) (said string, calls int, err error) {
	f := controllertest.Functions{World: controllertest.NewWorld()}
	p := f.World.Ports(fake.Fault{})
	c := f.Interruption(p)
	var log bytes.Buffer
	c.Place, c.Log = place, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" || a.Key == "level" || a.Key == "kind" || a.Key == "error" {
			return slog.Attr{}
		}
		return a
	}}))
	err = c.Handle(context.Background(), kind, event)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	slices.Sort(lines) // notices are handled side by side
	said = strings.NewReplacer(`msg="`, "", `"`, "", "msg=", "").Replace(strings.Join(lines, " | "))
	return said, len(p.Calls()), err
}
