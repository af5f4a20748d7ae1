package nodeclass

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

func equalJSON(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
