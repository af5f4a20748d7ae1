package shortrun

import (
	"flag"
	"testing"
)

// A flag wins over both defaults, and -short chooses between these.
func TestCount(t *testing.T) {
	short := flag.Lookup("test.short")
	was := short.Value.String()
	t.Cleanup(func() { short.Value.Set(was) })
	c := NewCount("shortrun-cases", 200, 20, "of this test")
	for _, run := range []struct {
		short string
		want  int
	}{{"false", 200}, {"true", 20}} {
		short.Value.Set(run.short)
		if got := Of(200, 20); got != run.want {
			t.Errorf("-short=%s: 200 or 20 are %d, want %d", run.short, got, run.want)
		}
		if got := c.N(); got != run.want {
			t.Errorf("-short=%s plays %d cases, want %d", run.short, got, run.want)
		}
	}
	if err := flag.Set("shortrun-cases", "7"); err != nil || c.N() != 7 || c.String() != "7" {
		t.Errorf("-shortrun-cases 7 plays %d cases, shown as %s, error %v", c.N(), c, err)
	}
	if err := flag.Set("shortrun-cases", "many"); err == nil {
		t.Error("-shortrun-cases many is taken")
	}
}

// A test that a short run leaves out runs in a full one.
func TestSkip(t *testing.T) {
	short := flag.Lookup("test.short")
	was := short.Value.String()
	t.Cleanup(func() { short.Value.Set(was) })
	for _, run := range []struct {
		short string
		want  bool
	}{{"false", true}, {"true", false}} {
		short.Value.Set(run.short)
		ran := false
		t.Run("-short="+run.short, func(t *testing.T) {
			Skip(t)
			ran = true
		})
		if ran != run.want {
			t.Errorf("-short=%s: it ran: %t, want %t", run.short, ran, run.want)
		}
	}
}
