package cloudformation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// versions are what Lambda knows of functions: the code and configuration of $LATEST, and the versions published of it.
type versions struct {
	latest    map[string]string      // by the name of the function
	published map[string][]published // oldest first
	last      map[string]int         // number that was given last
}

type published struct {
	id, content string // of its resource in the template
	number      int
}

// put notes the code and configuration of $LATEST.
func (v *versions) put(function Resource) {
	if v.latest == nil {
		v.latest, v.published, v.last = map[string]string{}, map[string][]published{}, map[string]int{}
	}
	v.latest[function.Physical] = versionContent(function.Properties)
}

// versionContent is what a version of a function with these properties holds, as text.
func versionContent(properties map[string]any) string {
	held := maps.Clone(properties)
	for _, no := range []string{"CodeSigningConfigArn", "RecursiveLoop", "ReservedConcurrentExecutions", "Tags"} {
		delete(held, no)
	}
	if network, ok := held["VpcConfig"].(map[string]any); ok { // whose lists have no order
		sorted := map[string]any{}
		for name, list := range network {
			ids, _ := list.([]any)
			sorted[name] = slices.SortedFunc(slices.Values(ids), func(a, b any) int {
				return slices.Compare([]string{fmt.Sprint(a)}, []string{fmt.Sprint(b)})
			})
		}
		held["VpcConfig"] = sorted
	}
	text, err := json.Marshal(held)
	if err != nil {
		return fmt.Sprint(held)
	}
	return string(text)
}

// publish makes a version of $LATEST, unless that is as the last one.
func (a *Emulated) publish(version *Resource, function string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := &a.versions
	content, there := v.latest[function]
	if !there {
		return fmt.Errorf("publish a version of %s: there is no such function", function)
	}
	if all := v.published[function]; len(all) > 0 && all[len(all)-1].content == content {
		return fmt.Errorf("a version for this Lambda function exists ( %d ): modify the function to create a new version",
			all[len(all)-1].number)
	}
	v.last[function]++
	v.published[function] = append(v.published[function], published{version.ID, content, v.last[function]})
	version.Attributes["Version"] = strconv.Itoa(v.last[function])
	return nil
}

// remove takes away the version of a resource, if it is one.
func (v *versions) remove(version Resource) {
	function, _ := version.Properties["FunctionName"].(string)
	if all := v.published[function]; version.Type == "AWS::Lambda::Version" {
		v.published[function] = slices.DeleteFunc(all, func(p published) bool { return p.id == version.ID })
	}
}

// forget takes away a function, and its versions with it.
func (v *versions) forget(function string) {
	delete(v.latest, function)
	delete(v.published, function)
	delete(v.last, function)
}

// HasVersion reports whether a version of a function is there.
func (a *Emulated) HasVersion(function string, number int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.versions.published[function], func(p published) bool { return p.number == number })
}

// CountVersions is how many versions each function has, by its name.
func (a *Emulated) CountVersions() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for function, all := range a.versions.published {
		out[function] = len(all)
	}
	return out
}
