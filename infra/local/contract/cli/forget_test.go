package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
)

// What was learned is shown, and dropped once somebody says so; of a type only, what else there is stays.
func TestForget(t *testing.T) {
	e := newEnv(t)
	e.pool(t, "forget", "m5.large")
	e.pool(t, "keep", "m5.large")
	patch := []byte(`{"metadata":{"annotations":{"mine":"1",
"joiner.sh/observed-memory":"{\"of\":\"x\",\"types\":{\"c5.large\":{\"mib\":3500,\"seen\":\"2026-11-20\"},\"m5.large\":{\"mib\":7500,\"seen\":\"2026-11-22\"}}}",
"joiner.sh/observed-shortfalls":"{\"of\":\"x\",\"seen\":[{\"type\":\"m5.large\",\"instance\":\"i-1\",\"has\":[{\"name\":\"cpu\",\"count\":1500}],\"at\":\"2026-11-22T00:00:00Z\"}]}"}}}`)
	for _, name := range []string{"forget", "keep"} {
		if _, err := e.dynamic.Resource(classes()).Patch(t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	transport, err := rest.TransportFor(e.plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	k, err := kube.New(kube.Config{Endpoint: e.plane.RESTConfig().Host, Transport: transport, UserAgent: "forget-test"})
	if err != nil {
		t.Fatal(err)
	}
	ledger := store.NewUnavailableOfferings(k, time.Now)
	if _, err := ledger.NoteUnusedNodes(t.Context(), []instancetypes.UnusedNode{{Class: "forget", Type: "m5.large", Cause: "1", Instance: "i-1", Allowed: 1, Why: "took none"}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := ledger.MarkUnavailable(t.Context(), []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "c5.large", Zone: "us-west-2a"}, Why: "unavailable"}}, time.Minute); err != nil {
		t.Fatal(err)
	}
	check := func(step string, args []string, code int, out, progress, left string) {
		t.Helper()
		c, o, p := e.joiner(append([]string{"forget"}, args...)...)
		if c != code || strings.Join(firstWords(o), "|") != out || !strings.Contains(p, progress) {
			t.Errorf("%s: exit %d, %q, says %q", step, c, o, p)
		}
		var have []string
		for _, name := range []string{"forget", "keep"} {
			cl, err := k.ReadClass(t.Context(), name)
			if err != nil || cl.Annotations["mine"] != "1" {
				t.Fatalf("%s: %v, %v", step, cl.Annotations, err)
			}
			memory := cl.Annotations["joiner.sh/observed-memory"]
			for _, word := range []string{"c5.large", "m5.large"} {
				if strings.Contains(memory, word) {
					have = append(have, name+" "+word)
				}
			}
			if cl.Annotations["joiner.sh/observed-shortfalls"] != "" {
				have = append(have, name+" short")
			}
		}
		marks, err := ledger.ListRemembered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range marks {
			have = append(have, "mark "+m.Type)
		}
		slices.Sort(have)
		if got := strings.Join(have, ", "); got != left {
			t.Errorf("%s: left %q, want %q", step, got, left)
		}
	}
	const all = "forget c5.large, forget m5.large, forget short, keep c5.large, keep m5.large, keep short, mark c5.large, mark m5.large"
	const one = "EC2NodeClass forget, m5.large: memory|EC2NodeClass forget, m5.large: only|EC2NodeClass forget, m5.large: left"
	check("nobody answers", []string{"--class", "forget", "--type", "m5.large"}, 2, one, "nobody answered; --yes goes on without asking", all)
	check("no such class", []string{"--class", "forgt", "--yes"}, 2, "", `no EC2NodeClass is called "forgt": there is forget, keep`, all)
	check("no such type", []string{"--type", "m5.lagre", "--yes"}, 2, "", `no instance type is called "m5.lagre"`, all)
	check("a type of a class", []string{"--class", "forget", "--type", "m5.large", "--yes"}, 0, one, "forgot 3 things",
		"forget c5.large, keep c5.large, keep m5.large, keep short, mark c5.large")
	check("again", []string{"--class", "forget", "--type", "m5.large", "--yes"}, 0, "nothing of that kind", "",
		"forget c5.large, keep c5.large, keep m5.large, keep short, mark c5.large")
	check("all", []string{"--yes"}, 0, "EC2NodeClass forget, c5.large: memory|EC2NodeClass keep, c5.large: memory|EC2NodeClass keep, m5.large: memory|EC2NodeClass keep, m5.large: only|spot c5.large in us-west-2a:", "forgot 5 things", "")
	check("all, again", []string{"--yes"}, 0, "nothing of that kind", "", "")
}

// firstWords are the first four words of each line.
func firstWords(text string) (out []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		out = append(out, strings.Join(words[:min(4, len(words))], " "))
	}
	return out
}
