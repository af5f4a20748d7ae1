package preflight_test

import (
	"strings"
	"testing"

	"joiner.sh/pkg/install/preflight"
)

func TestWhatAnAccountHasRoomFor(t *testing.T) {
	for name, c := range map[string]struct {
		room preflight.ConcurrencyRoom
		says []string // nothing: it fits
	}{
		"unknown":                   {room: preflight.ConcurrencyRoom{}},
		"an account after some use": {room: preflight.ConcurrencyRoom{Limit: 1000, Unreserved: 1000, Wanted: 104, ForNotices: 100}},
		"just enough":               {room: preflight.ConcurrencyRoom{Limit: 204, Unreserved: 204, Wanted: 104, ForNotices: 100}},
		"one too many": {room: preflight.ConcurrencyRoom{Limit: 1000, Unreserved: 203, Wanted: 104, ForNotices: 100, ForReservations: 10},
			says: []string{"may run 1000 Lambda invocations at once, 203 of them are not reserved, and 100 must stay so", "are to reserve 104 ", "1 too many", "--desired-value 1001", "set interruptionConcurrency in cdk.json to 89"}},
		"a new account": {room: preflight.ConcurrencyRoom{Limit: 10, Unreserved: 10, Wanted: 104, ForNotices: 100},
			says: []string{"may run 10 Lambda invocations at once, 10 of them", "and 10 must stay so", "104 too many", "--desired-value 1000, and deploy again"}},
		"nothing for notices":                         {room: preflight.ConcurrencyRoom{Limit: 1000, Unreserved: 103, Wanted: 4}, says: []string{"1 too many", "--desired-value 1001, and deploy again"}},
		"what it had is its own":                      {room: preflight.ConcurrencyRoom{Limit: 204, Unreserved: 100, Wanted: 104, ForNotices: 100, Had: 104}},
		"more than it had":                            {room: preflight.ConcurrencyRoom{Limit: 204, Unreserved: 100, Wanted: 106, ForNotices: 102, ForReservations: 10, Had: 104}, says: []string{"204 of them are not reserved", "2 too many", "to 90"}},
		"less than it had, and too much all the same": {room: preflight.ConcurrencyRoom{Limit: 50, Unreserved: 0, Wanted: 4, Had: 104}},
	} {
		err := c.room.CheckRoom()
		if (err == nil) != (len(c.says) == 0) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
	}
}
