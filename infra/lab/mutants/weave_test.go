package main

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// counting is a program that prints what its functions say, so that each mutant of it shows.
const counting = `package main

import "fmt"

var sum int

func add(a, b int) int { return a + b }

func count(to int) {
rows:
	for i := 0; i < to; i++ {
		for {
			if i == 1 {
				continue rows
			}
			break
		}
		sum++
	}
}

func main() {
	count(3)
	fmt.Print(add(5, 2), " ", sum)
}
`

func TestEachMutantOfABuildRunsAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module counting\n", "main.go": counting} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mutants, err := findMutants("main.go", []byte(counting), false)
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{
		`main.go add swap-operator "+" -> "-" #1`:                      "3 2",
		`main.go count swap-operator "<" -> "<=" #1`:                   "7 3",
		`main.go count swap-operator "==" -> "!=" #1`:                  "7 1",
		`main.go count skip-branch "i == 1" -> "false && (i == 1)" #1`: "7 3",
		`main.go count swap-operator "++" -> "--" #2`:                  "7 -2",
		`main.go main shift-number "5" -> "6" #1`:                      "8 2",
		`main.go main drop-statement "count(3)" -> "" #1`:              "7 0",
	}
	var sample []mutant
	for _, m := range mutants {
		if _, ok := printed[m.id()]; ok {
			sample = append(sample, m)
		}
	}
	overlay, err := writeWoven(t.TempDir(), sample)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", "program", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(number int) string {
		t.Setenv(selector, strconv.Itoa(number))
		out, err := exec.Command("./program").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := run(0); got != "7 2" {
		t.Errorf("without a mutant: %s", got)
	}
	for i, m := range sample {
		if got := run(i + 1); got != printed[m.id()] {
			t.Errorf("%s: got %s, want %s", m.id(), got, printed[m.id()])
		}
	}
	if len(sample) != len(printed) {
		t.Errorf("%d of %d mutants found", len(sample), len(printed))
	}
}

func TestWhatCompiles(t *testing.T) {
	t.Chdir("../../..")
	c, err := newChecker(t.Context(), areas())
	if err != nil {
		t.Fatal(err)
	}
	const file = "pkg/model/topology/topology.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found, err := findMutants(file, source, false)
	if err != nil || len(found) == 0 {
		t.Fatal(len(found), err)
	}
	for _, m := range found {
		got, err := c.compiles(m)
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := writeOverlay(t.TempDir(), map[string][]byte{file: m.apply(source)})
		if err != nil {
			t.Fatal(err)
		}
		if want := exec.Command("go", "build", "-overlay", overlay, "./pkg/model/topology").Run() == nil; got != want {
			t.Errorf("%s: got %v, the compiler says %v", m.id(), got, want)
		}
	}
}
