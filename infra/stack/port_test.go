package stack

import "testing"

func TestPortsOfURLs(t *testing.T) {
	for address, want := range map[string]float64{"": 443, "https://a.example/push": 443, "http://a.example/push": 80,
		"http://a.example:9090/push": 9090, "https://a.example:65535": 65535, "https://a.example:65536": 443, "http://[::1]:10": 10} {
		if got := portOf(address); got != want {
			t.Errorf("%q: port %v, want %v", address, got, want)
		}
	}
}
