package syntax

import (
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestCheck(t *testing.T) {
	g := NewGrammar(NewGrammar(nil, "pods NAME n=# cpu=# zone= ready", "wait", "class NAME broken broken="),
		"wait SPAN", "show [PART]", "crd NAME VERSION...", "room *=", "drop NAME... all")
	for line, want := range map[string]string{
		"pods web n=2 cpu=-3 zone=(a,b) ready": "",
		"pods ready ready":                     "",
		"pods web count=2":                     `pods: unknown argument "count", the nearest known is "cpu"`,
		"pods web redy":                        `pods: unknown argument "redy", the nearest known is "ready"`,
		"pods web n=two":                       `pods: argument "n" wants an integer, it has "two"`,
		"pods web n=":                          `pods: argument "n" wants an integer, it has ""`,
		"pods web n":                           `pods: argument "n" wants a value`,
		"pods web ready=true":                  `pods: argument "ready" takes no value, it has "true"`,
		"pods web n=1 n=2":                     `pods: argument "n" is given twice`,
		"pods n=1":                             `pods: no NAME is given`,
		"pods":                                 `pods: no NAME is given`,
		"pod web":                              `unknown directive "pod", the nearest known is "pods"`,
		"class x broken":                       "",
		"class x broken=why":                   "",
		"wait 5s":                              "",
		"wait 5s 6s":                           `wait: unknown argument "6s", there is none here`,
		"show":                                 "",
		"show tags":                            "",
		"show tags more":                       `show: unknown argument "more", there is none here`,
		"crd a":                                "",
		"crd a v1 v2 v3":                       "",
		"crd":                                  `crd: no NAME is given`,
		"room a=b c=d":                         "",
		"room a":                               `room: argument "a" wants a value`,
		"drop a b all":                         "",
	} {
		cmd, args, err := datadriven.ParseLine(line)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := g.Check(&datadriven.TestData{Cmd: cmd, CmdArgs: args}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
