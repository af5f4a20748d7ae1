package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/testing/readme"
)

// pages are the README files of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out, err := readme.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every command in the pages works as far as that can be seen here: make's targets are planned (make -n), our own
// commands have their flags and run when they read files of the repository, tests and packages of go exist, and calls
// of AWS have the parameters that are given. Those of kubectl run against a real API server, in
// infra/local/contract/cli. cdk and helm are looked up.
func TestCommandsInTheDocs(t *testing.T) {
	seen, done := map[string]int{}, map[string]bool{}
	for page, text := range pages(t) {
		for _, c := range readme.Commands(text) {
			words := shellWords(c)
			seen[words[0]]++
			if done[c] {
				continue
			}
			done[c] = true
			switch {
			case words[0] == "make":
				planned(t, page, words[1:])
			case words[0] == "joiner":
				ours(t, page, words[1:])
			case strings.HasPrefix(c, "go run ./functions/joiner "):
				ours(t, page, words[3:])
			case words[0] == "go":
				goCommand(t, page, words)
			case words[0] == "aws":
				if err := awsCall(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", page, c, err)
				}
			case words[0] != "kubectl" && c != "cdk bootstrap":
				t.Errorf("%s: %q: does it work? then add it here", page, c)
			}
		}
	}
	for _, program := range []string{"make", "joiner", "go", "aws", "kubectl"} {
		if seen[program] == 0 {
			t.Errorf("no command of %s was found: are they still looked for in the right way?", program)
		}
	}
}

// shellWords are the words of a command as a shell takes them: one between quotes keeps its spaces.
func shellWords(command string) []string {
	words := regexp.MustCompile(`([^\s']|'[^']*')+`).FindAllString(command, -1)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "'", "")
	}
	return words
}

// planned has make say what it would do.
func planned(t *testing.T, page string, args []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", "../.."}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: make %s: %v\n%s", page, strings.Join(args, " "), err, out)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range args[1:] {
		if name, _, set := strings.Cut(a, "="); !set || !strings.Contains(string(makefile), "$("+name+")") {
			t.Errorf("%s: make %s: the Makefile does not read %s", page, strings.Join(args, " "), name)
		}
	}
}

// ours checks a command of this program with its flags, and runs it if it reads a file of the repository.
func ours(t *testing.T, page string, args []string) {
	t.Helper()
	if code, _, progress := run(append(slices.Clone(args), "--help")...); code != 0 {
		t.Errorf("%s: joiner %s: %s", page, strings.Join(args, " "), progress)
	}
	i := slices.Index(args, "-f")
	if i < 0 || i+1 == len(args) || !strings.Contains(args[i+1], "/") {
		return
	}
	args = slices.Clone(args)
	args[i+1] = filepath.Join("../..", args[i+1])
	if code, out, progress := run(args...); code != 0 || out == "" {
		t.Errorf("%s: joiner %s: exit %d, %s", page, strings.Join(args, " "), code, progress)
	}
}

// goCommand checks that packages exist, in the folder that -C names, and the tests that -run and -fuzz choose.
func goCommand(t *testing.T, page string, words []string) {
	t.Helper()
	root := "../.."
	if words[1] == "-C" {
		root = filepath.Join(root, words[2])
	}
	for _, w := range words[2:] {
		if !strings.HasPrefix(w, "./") {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(w, "/..."), "*.go")); err != nil || len(found) == 0 && !strings.HasSuffix(w, "/...") {
			t.Errorf("%s: %q: there is no package %s", page, strings.Join(words, " "), w)
		}
		for i, flag := range words[:len(words)-1] {
			if flag == "-run" || flag == "-fuzz" {
				chosen(t, page, filepath.Join(root, w), strings.Trim(words[i+1], "'"))
			}
		}
	}
}

// chosen fails unless tests of the folder have names that match.
func chosen(t *testing.T, page, folder, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
			if regexp.MustCompile(pattern).Match(m[1]) {
				return
			}
		}
	}
	t.Errorf("%s: no test of %s is called %s", page, folder, pattern)
}

// What the pages point at is there: files and folders of the repository, and headings.
func TestLinksInTheDocs(t *testing.T) {
	all := pages(t)
	n := 0
	for page, text := range all {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			name := page
			if target != "" {
				name = filepath.Join(filepath.Dir(page), target)
				if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
					t.Errorf("%s: %s is not there", page, m[1])
				}
			}
			if heading != "" && !slices.Contains(headings(all[name]), heading) {
				t.Errorf("%s: %s: %s has no such heading", page, m[1], name)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d links were found", n)
	}
}

// headings are those of a page as links name them.
func headings(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			title = strings.ToLower(strings.TrimSpace(title))
			out = append(out, regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ReplaceAll(title, " ", "-"), ""))
		}
	}
	return out
}

// The picture names every function that there is.
func TestTheArchitectureNamesEveryFunction(t *testing.T) {
	picture, err := os.ReadFile("../../infra/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("../../functions/*/main.go")
	if err != nil || len(folders) == 0 {
		t.Fatal(err)
	}
	for _, f := range folders {
		if name := filepath.Base(filepath.Dir(f)); !strings.Contains(string(picture), ">"+name+"<") && !strings.Contains(string(picture), ">"+name+",") {
			t.Errorf("it does not name %s", name)
		}
	}
}
