package replay_test

import (
	"fmt"
	"os"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
)

// An object below passes/ in the stack's bucket is decided again, here of what an earlier version stored.
func ExampleDecideAgain() {
	data, err := os.ReadFile("testdata/disrupt-1.0.0-rc.1.json.gz")
	if err != nil {
		fmt.Println(err)
		return
	}
	pass, err := decisionlog.DecodePass(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := replay.DecideAgain(pass)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pass.Record)
	fmt.Println("was", again.Was[0])
	fmt.Println("is ", again.Lines[0])
	// Output:
	// 2026-11-29T09:31:00Z disrupt: 2 disruptions
	// was begin Empty: general-n-empty without replacement, saves 0.0415 USD/h, moves 0 pods
	// is  begin Empty: general-n-empty without replacement, saves 0.0415 USD/h, moves 0 pods
}
