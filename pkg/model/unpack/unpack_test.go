package unpack_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"joiner.sh/pkg/model/unpack"
)

func TestWhatIsOutOfBounds(t *testing.T) {
	most := unpack.Bounds{Bytes: 100, Objects: 3, Values: 5}
	for text, want := range map[string]string{
		`{"a":[{"b":1},null]}`:           "<nil>",
		`{"a":[{},{},{}]}`:               "4 objects, at most 3 are read",
		`{"a":[null,null,null]}`:         "4 objects, at most 3 are read",
		`{"a":["","","","","","",""]}`:   "6 values, at most 5 are read",
		strings.Repeat("[", 101):         "larger than 100 bytes",
		`{"a":`:                          "unexpected end of JSON input",
		`{"a":` + strings.Repeat("[", 9): "unexpected end of JSON input",
	} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		var into map[string]any
		if got := fmt.Sprint(unpack.JSON(&packed, most, &into)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if err := unpack.JSON(strings.NewReader("nonsense"), most, new(any)); err == nil {
		t.Error("what is not packed is read")
	}
}
