package accept

import (
	"fmt"
	"joiner.sh/pkg/model/lists"
	"slices"
	"strings"
)

// Item is one thing that there is, in the cluster or in AWS.
type Item struct {
	Kind, ID string
	// State holds what must not change of it. It is empty for what comes and goes without a run: instances of other
	// NodePools with what belongs to them.
	State string `json:",omitempty"`
}

func (i Item) name() string { return i.Kind + " " + i.ID }

// CompareInventories says what a run changed of what there was before it, and what is gone that may have gone by
// itself.
func CompareInventories(before, after []Item) (changed, notes []string) {
	now := lists.Index(after, Item.name)
	for _, was := range before {
		is, there := now[was.name()]
		switch {
		case there && is.State == was.State:
		case there:
			changed = append(changed, was.name()+" is not as it was")
		case was.State == "":
			notes = append(notes, was.name())
		default:
			changed = append(changed, was.name()+" is gone")
		}
	}
	slices.Sort(changed)
	slices.Sort(notes)
	return changed, notes
}

// mostGone caps the things that a note names.
const mostGone = 10

// GoneNote says what went meanwhile, which a cluster at work does by itself.
func GoneNote(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	more := ""
	if len(notes) > mostGone {
		more = fmt.Sprintf(" and %d more", len(notes)-mostGone)
	}
	return "of other NodePools went meanwhile: " + strings.Join(notes[:min(mostGone, len(notes))], ", ") + more
}
