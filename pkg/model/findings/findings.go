// Package findings is what checks find out about a cluster, an account or a move: what it is about, how much it matters
// and how to mend it.
//
// It refuses to know what is checked, and how findings are shown. Start with List.
package findings

// Level is the gravity of a finding.
type Level string

// How a check ended, the gravest first.
const (
	Broken  Level = "problem" // something cannot do its work, or part of it
	Warning Level = "warning" // it works, and worse than it could, or there is something to know
	Unknown Level = "unknown" // it could not be looked at
	Fine    Level = "fine"
)

// How much a finding matters to a move from one autoscaler to another, the gravest first.
const (
	Blocks Level = "blocks" // the switch would replace nodes, or leave something behind: mend it first
	Change Level = "change" // what the program changes when asked to
	Note   Level = "note"   // goes on differently, or is to be known
)

// Finding is the outcome of one check, or one thing about one object.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"` // the check, or kind and name of the object
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"` // what to do, with the command where there is one; empty for nothing
}

// List gathers findings in the order in which they are made. The zero value is empty.
type List []Finding

// Add adds a finding.
func (l *List) Add(level Level, about, what, mend string) {
	*l = append(*l, Finding{Level: level, About: about, What: what, Mend: mend})
}

// AddUnknown adds that a check could not be made, if there is a reason, and reports whether there is.
func (l *List) AddUnknown(about, why string) bool {
	if why != "" {
		l.Add(Unknown, about, why, "")
	}
	return why != ""
}

// AddFine adds that a check found nothing since there were so many findings.
func (l *List) AddFine(since int, about, what string) {
	if len(*l) == since {
		l.Add(Fine, about, what, "")
	}
}

// Has reports whether a finding is of the level.
func (l List) Has(level Level) bool { return l.Count(level) > 0 }

// Count returns how many findings are of the level.
func (l List) Count(level Level) (n int) {
	for _, f := range l {
		if f.Level == level {
			n++
		}
	}
	return n
}
