package instancetypes

import "slices"

// NetworkDevice is the place of a network interface of an instance.
type NetworkDevice struct {
	Card, Device int32
	EFA          bool
}

// efaDevices are the network interfaces of an instance whose pods ask for EFA: the first of the first card, which has
// the instance's address, and one EFA interface on each card that takes one, up to the most that EC2 gives.
func (f *Facts) efaDevices() []NetworkDevice {
	if f.MaxEFAs == 0 {
		return nil
	}
	cards := f.CardENIs
	if len(cards) == 0 {
		cards = slices.Repeat([]int64{2}, int(f.MaxEFAs)) // what is known without asking EC2
	}
	takesEFA := func(card int) bool {
		// EC2 gives the type fewer EFA interfaces than it has cards where the first is for the address alone
		first := len(f.CardsWithoutEFA) == 0 && card == 0 && int64(len(cards)) == f.MaxEFAs+1
		return !first && !slices.Contains(f.CardsWithoutEFA, int64(card))
	}
	out, left := []NetworkDevice{{EFA: takesEFA(0)}}, f.MaxEFAs
	if takesEFA(0) {
		left--
	}
	for card := 1; card < len(cards) && left > 0; card++ {
		if takesEFA(card) && cards[card] > 0 {
			out = append(out, NetworkDevice{Card: int32(card), Device: int32(min(cards[card]-1, 1)), EFA: true})
			left--
		}
	}
	return out
}
