package disruption

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// Annotations by which a command is known on the objects it touches.
const (
	// AnnotationMark on a NodeClaim that goes holds a Mark.
	AnnotationMark = v1.AnnotationDisruptionCommand
	// AnnotationReplaces on a NodeClaim names the command that it is a replacement of.
	AnnotationReplaces = v1.AnnotationReplaces
)

// CommandMark is the record of a command on each NodeClaim that it takes away.
type CommandMark struct {
	ID           string              `json:"id"`           // as Command.ID
	Reason       v1.DisruptionReason `json:"reason"`       // as Command.Reason
	Since        time.Time           `json:"since"`        // when the command began
	Replacements int                 `json:"replacements"` // how many NodeClaims carry AnnotationReplaces
	SavesUSD     float64             `json:"savesUSD"`     // per hour
}

// AsMark returns what to write on the NodeClaims of the command.
func (c Command) AsMark(now time.Time) CommandMark {
	return CommandMark{ID: c.ID, Reason: c.Reason, Since: now.UTC(), Replacements: len(c.Launches),
		SavesUSD: c.SavesUSD}
}

// String is the mark as the annotation holds it.
func (m CommandMark) String() string {
	b, err := json.Marshal(m)
	if err != nil {
		return "" // cannot be: the fields are plain; an empty mark is read as a broken one
	}
	return string(b)
}

// markOf reads the mark of a claim. One that cannot be read is a command without an ID, to be rolled back.
func markOf(c cluster.Claim) (m CommandMark, marked bool) {
	text := c.Annotations[AnnotationMark]
	if marked = text != ""; marked && json.Unmarshal([]byte(text), &m) != nil {
		m = CommandMark{}
	}
	return m, marked
}

// commandID names a command by its reason, its nodes and the time.
func commandID(reason v1.DisruptionReason, claims []string, now time.Time) string {
	h := fnv.New64a()
	h.Write([]byte(string(reason) + " " + strings.Join(claims, ",") + now.UTC().Format(time.RFC3339Nano)))
	return fmt.Sprintf("%016x", h.Sum64())
}
