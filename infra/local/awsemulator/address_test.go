package awsemulator

import (
	"net/netip"
	"testing"
)

// An address that is given back is not the next one to be handed out; when all others were, it is.
func TestAddressesAreNotHandedOutAgainAtOnce(t *testing.T) {
	s := &subnet{used: map[netip.Addr]bool{}, next: netip.MustParseAddr("10.0.0.4")}
	s.CIDR = netip.MustParsePrefix("10.0.0.0/29") // instances may have 4 to 6
	for i, want := range []string{"10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.4", "10.0.0.5"} {
		a := s.takeAddress()
		if a.String() != want {
			t.Errorf("address %d is %s, want %s", i, a, want)
		}
		delete(s.used, a)
	}
	s.used[netip.MustParseAddr("10.0.0.6")], s.used[netip.MustParseAddr("10.0.0.4")] = true, true
	if a := s.takeAddress(); a.String() != "10.0.0.5" {
		t.Errorf("with one address left %s is handed out", a)
	}
}
