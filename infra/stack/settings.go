package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/constructs-go/constructs/v10"

	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/settings"
)

// Props holds what one stack is made from.
type Props struct {
	Functions settings.Values      // what the functions will run with
	Stack     settings.StackValues // what only the stack needs
	// Given are the settings of the functions as somebody wrote them, by environment variable. What nobody wrote is
	// left to the functions' own defaults.
	Given map[string]string
	// ReservationConcurrency are the invocations of reservationinterruption, as Stack.InterruptionConcurrency, planned
	// with those of the other clusters.
	ReservationConcurrency int
	// DistFolder holds <GOARCH>/<function>/bootstrap or <GOARCH>/<function>.zip; empty: .local/dist.
	DistFolder string
}

// clustersKey holds a list of objects with settings, one for each stack of the app.
const clustersKey = "clusters"

// FromContext reads and checks the settings: the context of cdk.json and of -c on the command line. With the key
// clusters it gives one Props for each cluster, else a single one. The error names every context key that is wrong,
// unknown or computed by the stack, and what is allowed.
func FromContext(node constructs.Node) ([]Props, error) {
	context, err := ReadContext(node)
	if err != nil {
		return nil, err
	}
	return FromSettings(context)
}

// ReadContext returns the context of an app with values of the types that encoding/json gives.
func ReadContext(node constructs.Node) (map[string]any, error) {
	context, ok := node.GetAllContext(nil).(map[string]any)
	if !ok {
		return nil, errors.New("read context: it is no JSON object")
	}
	context, _ = plainJSON(context).(map[string]any)
	return context, nil
}

// MergeSettings adds the settings of a file, called by its name, to a context. A setting that both give with different
// values is an error, which names them all: nobody could tell which one is meant.
func MergeSettings(context, file map[string]any, name string) (map[string]any, error) {
	out := maps.Clone(context)
	var problems []error
	for _, key := range sortedKeys(file) {
		before, twice := context[key]
		switch {
		case key == schemaKey:
		case twice && fmt.Sprint(before) != fmt.Sprint(file[key]):
			problems = append(problems, fmt.Errorf("setting %s: %s says %v; cdk.json, -c or --cluster says %v: keep one of them", key, name, file[key], before))
		default:
			out[key] = file[key]
		}
	}
	return out, errors.Join(problems...)
}

// schemaKey names the schema of a file to editors.
const schemaKey = "$schema"

// FromSettings is FromContext for settings that have been read, with values of the types that encoding/json gives.
func FromSettings(context map[string]any) ([]Props, error) {
	list, many := context[clustersKey]
	if !many {
		p, err := fromMap(context)
		if err != nil {
			return nil, fmt.Errorf("check the settings of cdk.json, -c and --settings:\n%w", err)
		}
		return planConcurrency([]Props{p}), nil
	}
	entries, ok := list.([]any)
	if !ok || len(entries) == 0 {
		return nil, errors.New("check the context of cdk.json: key clusters: want a list of objects, each with the settings of one cluster")
	}
	return fromEntries(context, entries)
}

// plainJSON takes the wrapping off that CDK's Go runtime leaves on objects within the context.
func plainJSON(v any) any {
	const wrapping = "$jsii.map"
	switch v := v.(type) {
	case map[string]any:
		if inner, ok := v[wrapping]; ok && len(v) == 1 {
			return plainJSON(inner)
		}
		out := map[string]any{}
		for key, value := range v {
			out[key] = plainJSON(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainJSON(v[i])
		}
		return out
	}
	return v
}

// fromEntries makes the props of several clusters. What an entry does not say the settings beside the list say. A
// clusterName beside the list, as -c gives it, picks one.
func fromEntries(context map[string]any, entries []any) ([]Props, error) {
	const name = "clusterName"
	wanted, err := plainText(context[name])
	if err != nil {
		return nil, fmt.Errorf("check the context: key %s: %w", name, err)
	}
	var all []Props
	var names, ids []string
	var problems []error
	for i, entry := range entries {
		own, ok := entry.(map[string]any)
		if !ok {
			problems = append(problems, fmt.Errorf("clusters[%d]: want an object with the settings of one cluster", i))
			continue
		}
		merged := maps.Clone(context)
		delete(merged, clustersKey)
		delete(merged, name)
		maps.Copy(merged, own)
		p, err := fromMap(merged)
		cluster := p.Functions.ClusterName
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("clusters[%d]:\n%w", i, err))
			continue
		case slices.Contains(ids, p.stackID()):
			problems = append(problems, fmt.Errorf("clusters[%d]: clusterName %s is there twice in one account and region: "+
				"give account and region", i, cluster))
		}
		ids, names, all = append(ids, p.stackID()), append(names, cluster), append(all, p)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("check the settings of cdk.json, -c and --settings:\n%w", err)
	}
	// One that is deployed alone is planned like all together, or its concurrency would go up and down.
	out := slices.DeleteFunc(planConcurrency(all), func(p Props) bool {
		return wanted != "" && wanted != p.Functions.ClusterName
	})
	if len(out) == 0 {
		return nil, fmt.Errorf("find cluster %s: the key clusters of cdk.json has only %s", wanted,
			strings.Join(names, ", "))
	}
	return out, nil
}

func fromMap(context map[string]any) (Props, error) {
	var problems []error
	named, given := map[string]string{}, map[string]string{}
	for _, key := range sortedKeys(context) {
		if isCDKKey(key) {
			continue
		}
		s, known := settings.FindSetting(key)
		instead, removed := settings.Removed(key)
		switch {
		case removed:
			problems = append(problems, fmt.Errorf("context key %s: there is no such setting any more: %s", key, instead))
			continue
		case !known:
			problems = append(problems, fmt.Errorf("context key %s: there is no such setting%s", key, suggestKey(key)))
			continue
		case s.ByStack:
			problems = append(problems, fmt.Errorf("context key %s: the stack sets it itself; remove it", key))
			continue
		case s.ByTests:
			problems = append(problems, fmt.Errorf("context key %s: only tests change it; remove it", key))
			continue
		}
		value, err := valueText(s, context[key])
		if err != nil {
			problems = append(problems, fmt.Errorf("context key %s: %w", key, err))
			continue
		}
		named[key] = value
		if s.Env != "" && value != "" {
			given[s.Env] = value
		}
	}
	functions, err := settings.ParseSettings(func(env string) string { return given[env] })
	problems = append(problems, err)
	own, err := settings.ParseStack(func(name string) string { return named[name] })
	problems = append(problems, err, checkNetwork(own), checkSleep(own))
	if problem := functions.RemoteWrite.Problem(); problem != "" {
		problems = append(problems, errors.New("settings: "+problem))
	}
	out := Props{Functions: functions, Stack: own, Given: given}
	if err := errors.Join(append(problems, checkPush(out))...); err != nil {
		return Props{Functions: functions}, err
	}
	return out, nil
}

// checkSleep finds a schedule that cannot be meant, which the functions would not follow.
func checkSleep(v settings.StackValues) error {
	switch {
	case (v.HibernationSchedule == "") != (v.HibernationDuration == 0):
		return errors.New("settings: hibernationSchedule and hibernationDuration belong together: give both for a cluster that sleeps, or neither")
	case v.HibernationSchedule == "":
		return nil
	}
	cron, zone := v.Hibernation()
	if err := budgets.ValidateBudgets(cluster.Disruption{SleepAt: cron,
		SleepFor: v.HibernationDuration, SleepZone: zone}); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// isCDKKey tells the keys that CDK and its command line keep in the same context: feature flags and cached look-ups.
func isCDKKey(key string) bool {
	return strings.HasPrefix(key, "@") || strings.Contains(key, ":") || strings.HasPrefix(key, "cli-")
}

// suggestKey helps with a misspelt key.
func suggestKey(key string) string {
	if name, found := settings.Nearest(key); found {
		return "; did you mean " + name + "?"
	}
	return "; settings.md lists the settings"
}

// plainText turns a JSON value into the form that a user would write on the command line.
func plainText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case nil:
		return "", nil
	default:
		return "", errors.New("it is a list or an object, where a string, a number or a truth value belongs")
	}
}

// valueText also takes a list of texts, or an object with texts, for a setting that is one; without them it is as on
// the command line.
func valueText(s settings.Setting, v any) (string, error) {
	if list, isList := v.([]any); isList && s.Unit == "list of IAM statements" {
		text, err := json.Marshal(list)
		if err != nil {
			return "", fmt.Errorf("encode statements: %w", err)
		}
		return string(text), nil
	}
	var parts []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			t, err := plainText(e)
			if err != nil || strings.Contains(t, ",") {
				return "", errors.New("it is a list with something in it that is no plain text")
			}
			parts = append(parts, t)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			t, err := plainText(v[key])
			if err != nil || strings.Contains(t, ",") {
				return "", errors.New("it is an object with something in it that is no plain text")
			}
			parts = append(parts, key+"="+t)
		}
	}
	if parts == nil || !strings.HasPrefix(s.Unit, "list of") {
		return plainText(v)
	}
	return strings.Join(parts, ","), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
