package settings_test

import (
	"testing"

	"joiner.sh/pkg/settings"
)

func TestRecommendFunctionMemory(t *testing.T) {
	for _, c := range []struct{ nodes, pods, want int }{
		{0, 0, 512}, {500, 15000, 512}, {501, 15000, 1024}, {100, 15030, 1024}, {1000, 30000, 1024}, {2000, 60000, 1024}, {2001, 0, 3008},
		{5000, 150000, 3008}, {10000, 0, 6016}, {50000, 0, 10240},
	} {
		if got := settings.RecommendFunctionMemory(c.nodes, c.pods); got != c.want {
			t.Errorf("%d nodes, %d pods: %d MiB, want %d", c.nodes, c.pods, got, c.want)
		}
	}
}
