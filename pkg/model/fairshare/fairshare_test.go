package fairshare_test

import (
	"slices"
	"testing"

	"joiner.sh/pkg/model/fairshare"
)

func TestMaxMin(t *testing.T) {
	for _, c := range []struct {
		total       int64
		wants, want []int64
	}{
		{100, []int64{10, 20}, []int64{10, 20}},
		{100, []int64{1000, 20, 1000}, []int64{40, 20, 40}},
		{101, []int64{1000, 1000}, []int64{50, 51}},
		{0, []int64{5}, []int64{0}},
		{7, nil, []int64{}},
	} {
		if got := fairshare.MaxMin(c.total, c.wants); !slices.Equal(got, c.want) {
			t.Errorf("%d for %v: %v, want %v", c.total, c.wants, got, c.want)
		}
	}
}

func TestTurns(t *testing.T) {
	if got := fairshare.Turns([]string{"a", "a", "a", "b", "c", "b"}); !slices.Equal(got, []int{0, 3, 4, 1, 5, 2}) {
		t.Error(got)
	}
}
