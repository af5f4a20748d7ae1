package cli_test

import (
	"context"
	"strings"
	"testing"
)

// A pod that waits is explained from what the cluster has.
func TestExplainAPod(t *testing.T) {
	e := newEnv(t)
	tolerate := e.pool(t, "explain", "m5.large")
	e.applyAll(t, strings.NewReplacer("TOLERATION", tolerate, "cpu: 900m", "cpu: 90", "name: burst", "name: giant", "app: burst", "app: giant", "replicas: 4", "replicas: 1").Replace(burst))
	name := ""
	e.eventually(t, "the pod", func(context.Context) (string, bool) {
		_, out, progress := e.joiner("explain", "pod", "giant")
		if _, rest, found := strings.Cut(progress, "there is default/"); found {
			name = strings.TrimSpace(strings.SplitN(strings.SplitN(rest, ",", 2)[0], "\n", 2)[0])
		}
		return out + progress, name != ""
	})
	e.eventually(t, "the scheduler to give up", func(context.Context) (string, bool) {
		code, out, progress := e.joiner("explain", "pod", name)
		return out + progress, code == 0 && strings.Contains(out, "pod default/"+name+": no NodePool can give it a node") && strings.Contains(out, "no instance type is big enough for cpu=90")
	})
	code, out, progress := e.joiner("explain", "nodepool/explain")
	if code != 0 || !strings.Contains(out, "nodepool explain: it is ready") {
		t.Errorf("exit %d, %s%s", code, out, progress)
	}
}
