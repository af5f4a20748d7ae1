package capacity

import (
	"testing"

	"joiner.sh/pkg/model/requirements"
)

// A label that no value is named for gets the first number that its requirement allows, with zeros before it where all
// plain numbers near are refused.
func TestValuesThatNobodyNames(t *testing.T) {
	ten := int64(10)
	for _, c := range []struct {
		r    requirements.Requirement
		want string
	}{
		{requirements.Requirement{Values: []string{"a", "b"}}, "a"},
		{requirements.Requirement{Not: true}, "1"},
		{requirements.Requirement{Not: true, Values: []string{"1", "2"}}, "3"},
		{requirements.Requirement{Not: true, Min: &ten}, "10"},
		{requirements.Requirement{Not: true, Max: &ten}, "1"},
		{requirements.Requirement{Not: true, Max: &ten, Min: &ten}, "10"},
		{requirements.Requirement{Not: true, Min: &ten, Max: &ten, Values: []string{"10"}}, "010"},
		{requirements.Requirement{Not: true, Min: &ten, Max: &ten, Values: []string{"010", "10"}}, "0010"},
	} {
		if got := c.r.AnyValue(); got != c.want || !c.r.Has(got) {
			t.Errorf("%+v: got %s, want %s", c.r, got, c.want)
		}
	}
}
