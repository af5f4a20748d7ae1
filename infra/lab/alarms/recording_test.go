package alarms

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARecordingIsReadAsItWasWritten(t *testing.T) {
	r := Recording{Minutes: 9, Numbers: Numbers{}, Faults: []Fault{{3, 5, "a = b goes wrong", []string{"A", "B"}}, {6, 7, "c", []string{"C"}}}}
	for at, value := range []float64{1, 1, 1, 0, 0.25, 1} {
		r.PutMinute("AWS/Lambda Errors{Name=FunctionName, Value=Provision}", at, value)
	}
	r.PutMinute("other", 8, 3)
	var b bytes.Buffer
	if err := WriteRecording(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `minutes 9
fault 3 5 A,B = a = b goes wrong
fault 6 7 C = c
series AWS/Lambda Errors{Name=FunctionName, Value=Provision} = 0-2:1 3:0 4:0.25 5:1
series other = 8:3
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	got, err := ReadRecording(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

func TestADamagedRecordingIsRefusedWithItsLine(t *testing.T) {
	for _, line := range []string{"hours 3", "minutes x", "fault 3 A = b", "series a", "series a = x:1", "series a = 1-x:1", "series a = 1:x"} {
		if _, err := ReadRecording(strings.NewReader("minutes 1\n" + line)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want an error that names line 2", line, err)
		}
	}
}
