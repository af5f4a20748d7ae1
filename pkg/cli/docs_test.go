package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the README files of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"README.md", "functions/README.md", "infra/README.md", "pkg/README.md", "events/README.md"} {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// commands are what the pages tell people to type: indented lines and spans of code that begin with a program's name.
func commands(text string) []string {
	begins := regexp.MustCompile(`^(make|go|joiner|aws|kubectl|cdk|helm) [a-z.\-]`)
	var out []string
	add := func(c string) {
		c, _, _ = strings.Cut(c, "  #")
		c = strings.TrimSpace(c)
		if begins.MatchString(c) {
			out = append(out, c)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			add(strings.TrimSpace(line))
		}
	}
	for _, span := range regexp.MustCompile("`[^`]+`").FindAllString(text, -1) {
		add(strings.ReplaceAll(strings.Trim(span, "`"), "\n", " "))
	}
	return out
}

// Every command in the pages exists: make's targets, our own commands with their flags, Go's packages and tests. What reads files of the
// repository is run. Other programs' commands are those that somebody has looked at.
func TestCommandsInTheDocs(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for page, text := range pages(t) {
		for _, c := range commands(text) {
			words := strings.Fields(c)
			seen[words[0]]++
			switch {
			case words[0] == "make":
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[1]) + `:`).Match(makefile) {
					t.Errorf("%s: %q: the Makefile has no such target", page, c)
				}
			case words[0] == "joiner":
				ours(t, page, words[1:])
			case strings.HasPrefix(c, "go run ./functions/joiner "):
				ours(t, page, words[3:])
			case words[0] == "go":
				goCommand(t, page, words)
			default:
				looked(t, page, words)
			}
		}
	}
	for _, program := range []string{"make", "joiner", "go", "aws", "kubectl"} {
		if seen[program] == 0 {
			t.Errorf("no command of %s was found: are they still looked for in the right way?", program)
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
	if i < 0 || !strings.Contains(args[i+1], "/") {
		return
	}
	args = slices.Clone(args)
	args[i+1] = filepath.Join("../..", args[i+1])
	if code, out, progress := run(args...); code != 0 || out == "" {
		t.Errorf("%s: joiner %s: exit %d, %s", page, strings.Join(args, " "), code, progress)
	}
}

// goCommand checks that packages exist, in the folder that -C names.
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
	}
}

// looked accepts what was tried by hand, up to its arguments.
func looked(t *testing.T, page string, words []string) {
	t.Helper()
	c := strings.Join(words, " ")
	for _, known := range []string{
		"aws iam create-service-linked-role --aws-service-name", "aws lambda update-alias --function-name", "aws lambda list-versions-by-function --function-name",
		"aws ec2 get-console-output --instance-id", "cdk bootstrap", "kubectl delete node", "kubectl delete nodeclaim", "kubectl describe pod", "kubectl describe node",
		"kubectl describe ec2nodeclass", "kubectl annotate nodepool", "kubectl get events -A", "kubectl -n kube-system scale deployment karpenter --replicas",
	} {
		if strings.HasPrefix(c, known) {
			return
		}
	}
	t.Errorf("%s: %q: does it work? then add it here", page, c)
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
