// Package syntax checks the directives of scenario files against what a test harness understands, so that a slip in a
// scenario fails instead of building another world than the one that is meant.
//
// Start at NewGrammar. It knows the form of a directive, and refuses to know what a directive does.
package syntax

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/settings"
)

// Grammar holds what a harness understands: the form of each directive, by its name.
type Grammar map[string]form

// form says what may follow the name of a directive.
type form struct {
	names    []string          // of the arguments in the order of their places
	optional int               // how many of the last names may be left out
	many     bool              // the last name stands for any number of arguments
	keys     map[string][]kind // the arguments that have a key, "*" for any key
}

type kind int

const (
	flag    kind = iota // stands alone
	text                // has a value
	integer             // has a value that is an integer
)

// NewGrammar returns the base with more forms, which replace those of the same name. The form "pods NAME n=# zone=
// ready" is that of a directive pods with a name, an integer n, a text zone, and the word ready alone. "[NAME]" may be
// left out, "NAME..." is any number of names, "*=" is any key, and a key may be given in two ways.
func NewGrammar(base Grammar, forms ...string) Grammar {
	g := maps.Clone(base)
	if g == nil {
		g = Grammar{}
	}
	for _, line := range forms {
		words := strings.Fields(line)
		g[words[0]] = formOf(words[1:])
	}
	return g
}

func formOf(words []string) form {
	f := form{keys: map[string][]kind{}}
	for _, w := range words {
		key, value, valued := strings.Cut(w, "=")
		name := strings.Trim(w, "[].")
		switch {
		case name != "" && name[0] >= 'A' && name[0] <= 'Z' && !valued:
			f.names = append(f.names, name)
			f.many = strings.Contains(w, "...")
			if strings.HasPrefix(w, "[") || f.many {
				f.optional++
			}
		case !valued:
			f.keys[key] = append(f.keys[key], flag)
		case value == "#":
			f.keys[key] = append(f.keys[key], integer)
		default:
			f.keys[key] = append(f.keys[key], text)
		}
	}
	return f
}

// Check says what the harness does not understand of a directive, and which known word is nearest.
func (g Grammar) Check(d *datadriven.TestData) error {
	f, known := g[d.Cmd]
	if !known {
		return UnknownWord("directive", d.Cmd, slices.Collect(maps.Keys(g))...)
	}
	named, given := 0, map[string]bool{}
	for _, a := range d.CmdArgs {
		_, keyed := f.keys[a.Key]
		if len(a.Vals) == 0 && len(given) == 0 && (named < len(f.names)-f.optional || !keyed &&
			(named < len(f.names) || f.many)) {
			named++
			continue
		}
		if given[a.Key] {
			return fmt.Errorf("%s: argument %q is given twice", d.Cmd, a.Key)
		}
		given[a.Key] = true
		if err := f.check(a); err != nil {
			return fmt.Errorf("%s: %w", d.Cmd, err)
		}
	}
	if least := len(f.names) - f.optional; named < least {
		return fmt.Errorf("%s: no %s is given", d.Cmd, strings.Join(f.names[named:least], " and no "))
	}
	return nil
}

// check says what is wrong with an argument that has a key.
func (f form) check(a datadriven.CmdArg) error {
	kinds, known := f.keys[a.Key]
	if !known {
		kinds, known = f.keys["*"]
	}
	if !known {
		return UnknownWord("argument", a.Key, slices.Collect(maps.Keys(f.keys))...)
	}
	if len(a.Vals) == 0 {
		if !slices.Contains(kinds, flag) {
			return fmt.Errorf("argument %q wants a value", a.Key)
		}
		return nil
	}
	if slices.Contains(kinds, text) {
		return nil
	}
	if !slices.Contains(kinds, integer) {
		return fmt.Errorf("argument %q takes no value, it has %q", a.Key, strings.Join(a.Vals, ","))
	}
	if _, err := strconv.ParseInt(strings.Join(a.Vals, " "), 10, 64); err != nil {
		return fmt.Errorf("argument %q wants an integer, it has %q", a.Key, strings.Join(a.Vals, ","))
	}
	return nil
}

// UnknownWord is the error about a word that is none of the known ones; what says what the word should be.
func UnknownWord(what, word string, known ...string) error {
	if len(known) == 0 {
		return fmt.Errorf("unknown %s %q, there is none here", what, word)
	}
	slices.Sort(known)
	nearest := slices.MinFunc(known, func(a, b string) int {
		return settings.EditDistance(word, a) - settings.EditDistance(word, b)
	})
	return fmt.Errorf("unknown %s %q, the nearest known is %q", what, word, nearest)
}
