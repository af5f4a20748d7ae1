package compact

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"joiner.sh/pkg/model/requirements"
)

type inner struct {
	Name  string
	Count *int64
}

type sample struct {
	Text    string
	Number  int32
	Size    uint16
	Share   float64
	Yes     bool
	At      time.Time
	Lists   [][]string
	Labels  map[string]string
	Inner   map[string]inner
	Pointer *inner
	Needs   requirements.Set
}

func samples(t testing.TB) []sample {
	t.Helper()
	n := int64(-7)
	r, err := requirements.NewRequirement("zone", requirements.In, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	return []sample{{}, {Text: "web", Number: -3, Size: 9, Share: 0.25, Yes: true, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Lists: [][]string{nil, {}, {"web", "web"}}, Labels: map[string]string{"app": "web", "tier": "web"},
		Inner: map[string]inner{"b": {Count: &n}, "a": {Name: "web"}}, Pointer: &inner{}, Needs: requirements.NewSet(r)},
		{Lists: [][]string{}, Labels: map[string]string{}, Inner: map[string]inner{}}}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var w Writer
	w.WriteText("joiner")
	all := samples(t)
	for i := range all {
		WriteValue(&w, &all[i])
	}
	r := NewReader(w.Bytes())
	if got := r.ReadText(); got != "joiner" {
		t.Errorf("read %q", got)
	}
	for i := range all {
		var got sample
		ReadValue(r, &got)
		if diff := cmp.Diff(all[i], got, cmp.AllowUnexported(requirements.Set{})); diff != "" || r.Err() != nil {
			t.Errorf("sample %d, error %v (-written +read):\n%s", i, r.Err(), diff)
		}
	}
	if r.Rest() != 0 {
		t.Errorf("%d bytes are left", r.Rest())
	}
	if n := strings.Count(string(w.Bytes()), "web"); n != 1 {
		t.Errorf("a word stands %d times, want once", n)
	}
}

// Bytes that end too early are an error wherever they end, and so are words that did not come.
func TestDamageIsAnError(t *testing.T) {
	var w Writer
	WriteValue(&w, &samples(t)[1])
	for n := range len(w.Bytes()) {
		r := NewReader(w.Bytes()[:n])
		var got sample
		if ReadValue(r, &got); r.Err() == nil {
			t.Fatalf("the first %d of %d bytes are read without an error", n, len(w.Bytes()))
		}
	}
	for _, b := range [][]byte{{5}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {0, 200, 'a'}} {
		if r := NewReader(b); r.ReadWord() != "" || r.Err() == nil {
			t.Errorf("%v is a word", b)
		}
	}
}

func TestFingerprintTellsTypesApart(t *testing.T) {
	type renamed struct{ Title string }
	type before struct{ Name string }
	type longer struct {
		Name string
		Age  int
	}
	known := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[before](), reflect.TypeFor[renamed](), reflect.TypeFor[longer](), reflect.TypeFor[sample]()} {
		text, err := Fingerprint(of)
		if err != nil || known[text] {
			t.Errorf("%s: %q is that of another type, or error %v", of, text, err)
		}
		known[text] = true
	}
	type hidden struct{ name string } //nolint:unused // that it is not exported is the point
	type nested struct{ Again []nested }
	for _, of := range []reflect.Type{reflect.TypeFor[hidden](), reflect.TypeFor[nested](), reflect.TypeFor[func()](), reflect.TypeFor[struct{}](), reflect.TypeFor[map[int]string]()} {
		if text, err := Fingerprint(of); err == nil {
			t.Errorf("%s can be written: %s", of, text)
		}
	}
}

// What is read from any bytes is written and read again as the same.
func FuzzReadValue(f *testing.F) {
	for _, s := range samples(f) {
		var w Writer
		WriteValue(&w, &s)
		f.Add(w.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second sample
		r := NewReader(b)
		if ReadValue(r, &first); r.Err() != nil {
			return
		}
		var w Writer
		WriteValue(&w, &first)
		again := NewReader(w.Bytes())
		if ReadValue(again, &second); again.Err() != nil {
			t.Fatal(again.Err())
		}
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(requirements.Set{}), cmpopts.EquateNaNs()); diff != "" {
			t.Fatal(diff)
		}
	})
}
