// Package version holds the number of the release that the code belongs to, and how a function of AWS says it.
package version

import "strings"

// Number is the release as a semantic version, without the v of its tag. The first heading of infra/CHANGELOG.md has
// the same.
const Number = "1.0.0-rc.2"

// UserAgent returns name/Number, the form in which HTTP clients introduce themselves.
func UserAgent(name string) string { return name + "/" + Number }

// product begins the description of a Lambda function.
const product = "Joiner"

// Describe returns the description of a Lambda function: the version, and what the function does.
func Describe(does string) string { return product + " " + Number + " " + does }

// InDescription returns the version in the description of a Lambda function; nothing for a release that wrote none.
func InDescription(description string) string {
	words := strings.Fields(description)
	if len(words) < 2 || words[0] != product || strings.HasSuffix(words[1], ":") {
		return ""
	}
	return words[1]
}
