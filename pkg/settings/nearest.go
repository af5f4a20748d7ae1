package settings

import "strings"

// Removed says what takes the place of a setting that there was once; false for any other name.
func Removed(name string) (instead string, found bool) {
	instead, found = map[string]string{
		"nodeTags":          "use tags, which are on the node role too",
		"staleCatalogAlarm": "the alarm CatalogOld rings after 6h",
	}[name]
	return instead, found
}

// Nearest returns the name of the setting that somebody most likely means who writes the key: the one of that name or
// environment variable in other capitals, else the one that fewest letters tell from it. It is false where none is
// near. Settings that cdk.json refuses are not looked at.
func Nearest(key string) (name string, found bool) {
	least := max(2, len(key)/4) + 1
	for _, s := range AllSettings() {
		if s.ByStack || s.ByTests {
			continue
		}
		if strings.EqualFold(s.Name, key) || strings.EqualFold(s.Env, key) {
			return s.Name, true
		}
		if d := EditDistance(strings.ToLower(s.Name), strings.ToLower(key)); d < least {
			least, name = d, s.Name
		}
	}
	return name, name != ""
}

// EditDistance is how many letters must be added, removed or replaced to make one text of the other.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
