package main

// difference is a way in which both sides differ on purpose.
type difference struct {
	name    string
	row     string // of the table "What differs from Karpenter", or why there is none
	applies func(finding) bool
}

// explain is the name of the difference that accounts for the finding, empty for none.
func explain(f finding) string {
	for _, d := range differences() {
		if d.applies(f) {
			return d.name
		}
	}
	return ""
}

func differences() []difference {
	return []difference{}
}
