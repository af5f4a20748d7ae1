// Package version holds the number of the release that the code belongs to, and nothing else.
package version

// Number is the release as a semantic version, without the v of its tag. The first heading of infra/CHANGELOG.md has
// the same.
const Number = "1.0.0-rc.2"

// UserAgent returns name/Number, the form in which HTTP clients introduce themselves.
func UserAgent(name string) string { return name + "/" + Number }
