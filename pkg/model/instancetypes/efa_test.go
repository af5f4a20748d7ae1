package instancetypes

import (
	"fmt"
	"strings"
	"testing"
)

// EFA interfaces are on cards that take them, on a device that the card has, and not more than EC2 gives.
func TestDevicesForEFA(t *testing.T) {
	for _, c := range []struct {
		name    string
		maximum int64
		cards   []int64
		without []int64
		want    string
	}{
		{"none", 0, []int64{4}, nil, ""},
		{"one card", 1, []int64{15}, nil, "0/0 efa"},
		{"p5: a card each", 3, []int64{2, 2, 2}, nil, "0/0 efa, 1/1 efa, 2/1 efa"},
		{"p6-b300 before EC2 was asked: the first card takes none", 3, []int64{4, 4, 4, 4}, nil, "0/0, 1/1 efa, 2/1 efa, 3/1 efa"},
		{"p6-b300", 3, []int64{4, 4, 4, 4}, []int64{0}, "0/0, 1/1 efa, 2/1 efa, 3/1 efa"},
		{"p6e-gb200: every other card has one device", 4, []int64{2, 1, 2, 1}, nil, "0/0 efa, 1/0 efa, 2/1 efa, 3/0 efa"},
		{"cards in the middle that take none", 2, []int64{2, 2, 2, 2}, []int64{1, 3}, "0/0 efa, 2/1 efa"},
		{"fewer than cards", 2, []int64{2, 2, 2, 2}, nil, "0/0 efa, 1/1 efa"},
		{"cards that nobody knows", 2, nil, nil, "0/0 efa, 1/1 efa"},
	} {
		f := Facts{MaxEFAs: c.maximum, CardENIs: c.cards, CardsWithoutEFA: c.without}
		var got []string
		for _, d := range f.efaDevices() {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d/%d %s", d.Card, d.Device, map[bool]string{true: "efa"}[d.EFA])))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}
