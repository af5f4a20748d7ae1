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
//
// Code and configuration are in it, and the network, whose lists have no order. Not in it are
//   - concurrency: Lambda API, PutFunctionConcurrency: "Concurrency settings apply to the function as a whole,
//     including all published versions and the unpublished version";
//   - tags: Lambda developer guide, Using tags on Lambda functions: "Tags are not part of the version-specific
//     configuration that Lambda creates a snapshot of when you publish a version";
//   - the recursive loop: Lambda API, PutFunctionRecursionConfig, which takes the name of a function and no qualifier;
//   - code signing: Lambda API, PutFunctionCodeSigningConfig: "Changes to the code signing configuration take effect
//     the next time a user tries to deploy a code package to the function".
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
//
//   - Lambda API, PublishVersion: "Lambda doesn't publish a version if the function's configuration and code haven't
//     changed since the last version." So an older release may be published again after a newer one. The developer
//     guide, Manage Lambda function versions, can be read otherwise: "If $LATEST is identical to a previously published
//     version, you won't be able to create a new version".
//   - Lambda API, PublishVersion, Description: "A description for the version to override the description in the
//     function configuration." Whether another one alone makes a version no page says. Here it makes none, which is
//     worse for us.
//   - CloudFormation template reference, AWS::Lambda::Version, Description: "Update requires: Replacement".
//   - Where Lambda answers with the version that is there, the resource fails: aws-cdk#5334, "A version for this Lambda
//     function exists ( 1 ). Modify the function to create a new version."
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

// forget takes away a function, and its versions with it: Lambda API, DeleteFunction: "To delete a specific function
// version, use the Qualifier parameter. Otherwise, all versions and aliases are deleted."
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
