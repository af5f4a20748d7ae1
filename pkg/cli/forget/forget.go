// Package forget says what there is to drop of what Joiner learned, from nodes and from refusals of EC2.
//
// It knows what EC2NodeClasses carry and what the functions noted. It refuses to know how both were read, and drops
// nothing itself. What nodes that still run report is learned again by the next pass of refresh.
package forget

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// Known holds all that was learned.
type Known struct {
	Classes     []awsv1.EC2NodeClass // sorted by name
	Unavailable []instancetypes.UnavailableEntry
	Now         time.Time
}

// Filter limits what is dropped to an EC2NodeClass and an instance type. Empty fields limit nothing.
type Filter struct{ Class, Type string }

// DropPlan holds what is dropped.
type DropPlan struct {
	Lines       []string                            // one for each thing, for people
	Classes     []string                            // that carry some of it, by name
	Unavailable []instancetypes.UnavailableOffering // entries to delete; nil for none
}

// PlanDrop says what there is to drop. With a class, entries that are about no class stay; with a type, those that are
// about all types.
func PlanDrop(k Known, f Filter) (p DropPlan) {
	for i := range k.Classes {
		c := &k.Classes[i]
		if f.Class != "" && f.Class != c.Name {
			continue
		}
		before := len(p.Lines)
		for _, fact := range nodeclass.ListLearned(c) {
			if f.Type == "" || f.Type == fact.Type {
				about := strings.TrimSuffix("EC2NodeClass "+c.Name+", "+fact.Type, ", ")
				p.Lines = append(p.Lines, oneLine(about+": "+fact.What))
			}
		}
		if len(p.Lines) > before {
			p.Classes = append(p.Classes, c.Name)
		}
	}
	for _, m := range k.Unavailable {
		if f.Class != "" && f.Class != classOf(m) || f.Type != "" && f.Type != m.Type {
			continue
		}
		p.Lines, p.Unavailable = append(p.Lines, entryText(m, k.Now)), append(p.Unavailable, m.UnavailableOffering)
	}
	return p
}

// CheckNames refuses a class that neither is there nor has entries, and a type of which nothing is known: such names
// are slips. Sold reports whether EC2 sells a type.
func CheckNames(k Known, f Filter, sold func(instanceType string) bool) error {
	var errs []error
	named := func(c awsv1.EC2NodeClass) bool { return c.Name == f.Class }
	if f.Class != "" && !slices.ContainsFunc(k.Classes, named) && len(PlanDrop(k, Filter{Class: f.Class}).Lines) == 0 {
		names := make([]string, 0, len(k.Classes))
		for _, c := range k.Classes {
			names = append(names, c.Name)
		}
		there := "there is none"
		if len(names) > 0 {
			there = "there is " + strings.Join(names, ", ")
		}
		errs = append(errs, fmt.Errorf("no EC2NodeClass is called %q: %s", f.Class, there))
	}
	if f.Type != "" && len(PlanDrop(k, Filter{Type: f.Type}).Lines) == 0 && !sold(f.Type) {
		errs = append(errs, fmt.Errorf("no instance type is called %q", f.Type))
	}
	return errors.Join(errs...)
}

// classOf is the EC2NodeClass that the entry is about, empty for one that is about all.
func classOf(m instancetypes.UnavailableEntry) string {
	name, of := strings.CutPrefix(m.Scope, instancetypes.ClassScope(""))
	if !of {
		return ""
	}
	return name
}

// entryText says what an entry has Joiner do, or did.
func entryText(m instancetypes.UnavailableEntry, now time.Time) string {
	class, instanceType := m.ClassType()
	about, does, did := offeringText(m), "unavailable", "was unavailable"
	switch {
	case class != "" && m.Resource != "":
		about, does = fmt.Sprintf("EC2NodeClass %s, %s", class, instanceType), "without "+m.Resource
		did = fmt.Sprintf("%d nodes without %s", len(m.Instances), m.Resource)
	case class != "":
		about, does = fmt.Sprintf("EC2NodeClass %s, %s", class, instanceType), "left out"
		did = fmt.Sprintf("%d nodes bought in vain", len(m.Instances))
	case m.Class() != "" && m.LeavesOut():
		about, does = "EC2NodeClass "+m.Class(), "left alone"
		did = fmt.Sprintf("%d nodes never became usable", len(m.Instances))
	case m.Class() != "":
		about, does, did = "EC2NodeClass "+m.Class(), "left alone", "a launch failed"
	}
	text := about + ": " + did
	if now.Before(m.Until) {
		text = about + ": " + does + " until " + m.Until.UTC().Format("2006-01-02 15:04")
	}
	if m.Why != "" {
		text += " (" + m.Why + ")"
	}
	return oneLine(text)
}

// offeringText names an offering that EC2 refused.
func offeringText(m instancetypes.UnavailableEntry) string {
	if m.OfferingKey == (instancetypes.OfferingKey{}) {
		return m.Scope
	}
	text := fmt.Sprintf("%s %s in %s", m.CapacityType, cmp.Or(m.Type, "of all types"), cmp.Or(m.Zone, "all zones"))
	return strings.TrimSuffix(text+" for "+m.Scope, " for ")
}

// oneLine is the text without line ends: others wrote parts of it.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
