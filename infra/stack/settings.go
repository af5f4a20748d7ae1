package stack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/constructs-go/constructs/v10"

	"joiner/pkg/setting"
)

// Props is what one stack is made from.
type Props struct {
	Functions setting.Values      // what the functions will run with
	Stack     setting.StackValues // what only the stack needs
	// Given are the settings of the functions as somebody wrote them, by environment variable. What nobody wrote is left to
	// the functions' own defaults.
	Given map[string]string
}

// FromContext reads and checks the settings: the context of cdk.json and of -c on the command line. The error names every
// context key that is wrong, unknown or computed by the stack, and what is allowed.
func FromContext(node constructs.Node) (Props, error) {
	context, ok := node.GetAllContext(nil).(map[string]any)
	if !ok {
		return Props{}, errors.New("read context: it is no JSON object")
	}
	return fromMap(context)
}

func fromMap(context map[string]any) (Props, error) {
	var problems []error
	named, given := map[string]string{}, map[string]string{}
	for _, key := range sortedKeys(context) {
		if isCDKKey(key) {
			continue
		}
		s, known := setting.Find(key)
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("context key %s: there is no such setting%s", key, suggestion(key)))
			continue
		case s.ByStack:
			problems = append(problems, fmt.Errorf("context key %s: the stack sets it itself; remove it", key))
			continue
		}
		value, err := plainText(context[key])
		if err != nil {
			problems = append(problems, fmt.Errorf("context key %s: %w", key, err))
			continue
		}
		named[key] = value
		if s.Env != "" && value != "" {
			given[s.Env] = value
		}
	}
	functions, err := setting.Parse(func(env string) string { return given[env] })
	problems = append(problems, err)
	own, err := setting.ParseStack(func(name string) string { return named[name] })
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return Props{}, fmt.Errorf("check the context of cdk.json and -c:\n%w", err)
	}
	return Props{Functions: functions, Stack: own, Given: given}, nil
}

// isCDKKey tells the keys that CDK and its command line keep in the same context: feature flags and cached look-ups.
func isCDKKey(key string) bool {
	return strings.HasPrefix(key, "@") || strings.Contains(key, ":") || strings.HasPrefix(key, "cli-")
}

// suggestion helps with wrong capitals, the most likely mistake.
func suggestion(key string) string {
	for _, s := range setting.All() {
		if strings.EqualFold(s.Name, key) || strings.EqualFold(s.Env, key) {
			return "; did you mean " + s.Name + "?"
		}
	}
	return "; infra/README.md lists the settings"
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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
