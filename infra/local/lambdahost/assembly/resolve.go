package assembly

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// stack resolves the intrinsics of one template.
type stack struct {
	name     string
	place    Place
	template template
	assets   assets
	secrets  map[string]string // values made so far, by ARN

	made       Made // answers for resources; nil: all are taken to exist
	generation int  // of a resource that CloudFormation names; 0 for the first
}

// noValue marks what AWS::NoValue removes.
type noValue struct{}

// resolveValue returns a copy of v with every intrinsic replaced by its value.
func (s *stack) resolveValue(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if name, argument, ok := parseIntrinsic(v); ok {
			return s.callIntrinsic(name, argument)
		}
		out := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			value, err := s.resolveValue(v[key])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			if value != (noValue{}) {
				out[key] = value
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			value, err := s.resolveValue(item)
			if err != nil {
				return nil, err
			}
			if value != (noValue{}) {
				out = append(out, value)
			}
		}
		return out, nil
	case string:
		return s.revealSecret(v)
	default:
		return v, nil
	}
}

// parseIntrinsic recognises an object with the one member Ref, Condition or Fn::anything. A policy statement's
// Condition has an object as its value, an intrinsic's a name.
func parseIntrinsic(v map[string]any) (string, any, bool) {
	if len(v) != 1 {
		return "", nil, false
	}
	for name, argument := range v {
		_, isName := argument.(string)
		if name == "Ref" || strings.HasPrefix(name, "Fn::") || (name == "Condition" && isName) {
			return name, argument, true
		}
	}
	return "", nil, false
}

func (s *stack) callIntrinsic(name string, argument any) (any, error) {
	var value any
	var err error
	switch name {
	case "Ref":
		value, err = s.resolveRef(fmt.Sprint(argument))
	case "Fn::GetAtt":
		value, err = s.getAtt(argument)
	case "Fn::Join":
		value, err = s.joinValues(argument)
	case "Fn::Sub":
		value, err = s.substituteText(argument)
	case "Fn::Select":
		value, err = s.selectValue(argument)
	case "Fn::Split":
		value, err = s.splitText(argument)
	case "Fn::Base64":
		value, err = s.resolveText(argument)
		value = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
	case "Fn::GetAZs":
		value = []any{s.place.Region + "a", s.place.Region + "b", s.place.Region + "c", s.place.Region + "d"}
	case "Fn::FindInMap":
		value, err = s.findInMap(argument)
	case "Fn::If":
		value, err = s.chooseValue(argument)
	case "Condition", "Fn::Equals", "Fn::And", "Fn::Or", "Fn::Not":
		value, err = s.evaluateCondition(map[string]any{name: argument})
	default:
		return nil, fmt.Errorf("%s: unknown intrinsic function", name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if text, ok := value.(string); ok {
		return s.revealSecret(text)
	}
	return value, nil
}

// resolveRef answers pseudo parameters, parameters by their default, and resources by what Ref gives for their type.
func (s *stack) resolveRef(name string) (any, error) {
	switch name {
	case "AWS::AccountId":
		return s.place.Account, nil
	case "AWS::Region":
		return s.place.Region, nil
	case "AWS::Partition":
		return "aws", nil
	case "AWS::URLSuffix":
		return "amazonaws.com", nil
	case "AWS::StackName":
		return s.name, nil
	case "AWS::StackId":
		return s.place.stackID(s.name), nil
	case "AWS::NotificationARNs":
		return []any{}, nil
	case "AWS::NoValue":
		return noValue{}, nil
	}
	if p, ok := s.template.Parameters[name]; ok {
		if p.Default == nil {
			return nil, fmt.Errorf("parameter %s has no default", name)
		}
		return p.Default, nil
	}
	if r, ok := s.template.Resources[name]; ok {
		return s.resolveAttribute(name, r, "Ref")
	}
	return nil, fmt.Errorf("%s is no parameter or resource of the template", name)
}

// getAtt takes both forms: [resource, attribute] and "resource.attribute".
func (s *stack) getAtt(argument any) (any, error) {
	var name, attribute string
	switch v := argument.(type) {
	case string:
		name, attribute, _ = strings.Cut(v, ".")
	case []any:
		if len(v) != 2 {
			return nil, fmt.Errorf("wants two arguments, has %d", len(v))
		}
		name, attribute = fmt.Sprint(v[0]), fmt.Sprint(v[1])
	}
	r, ok := s.template.Resources[name]
	if !ok {
		return nil, fmt.Errorf("%q is no resource of the template", name)
	}
	return s.resolveAttribute(name, r, attribute)
}

func (s *stack) joinValues(argument any) (any, error) {
	list, err := s.resolveArguments(argument, 2)
	if err != nil {
		return nil, err
	}
	parts, ok := list[1].([]any)
	if !ok {
		return nil, fmt.Errorf("wants a list to join, not %T", list[1])
	}
	var words []string
	for _, part := range parts {
		words = append(words, scalarText(part))
	}
	return strings.Join(words, scalarText(list[0])), nil
}

// substituteText replaces ${Name}, ${Resource.Attribute} and the names of its own map; ${!Name} stays ${Name}.
func (s *stack) substituteText(argument any) (any, error) {
	text, isText := argument.(string)
	own := map[string]any{}
	if !isText {
		list, ok := argument.([]any)
		if !ok || len(list) != 2 {
			return nil, fmt.Errorf("wants a string, or a string and a map")
		}
		text, _ = list[0].(string)
		values, err := s.resolveValue(list[1])
		if err != nil {
			return nil, err
		}
		own, _ = values.(map[string]any)
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("unclosed ${ in %q", text)
		}
		value, err := s.subValue(name, own)
		if err != nil {
			return nil, err
		}
		out.WriteString(scalarText(value))
		text = after
	}
}

func (s *stack) subValue(name string, own map[string]any) (any, error) {
	if literal, ok := strings.CutPrefix(name, "!"); ok {
		return "${" + literal + "}", nil
	}
	if value, ok := own[name]; ok {
		return value, nil
	}
	if strings.Contains(name, ".") {
		return s.getAtt(name)
	}
	return s.resolveRef(name)
}

func (s *stack) selectValue(argument any) (any, error) {
	list, err := s.resolveArguments(argument, 2)
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(scalarText(list[0]))
	items, ok := list[1].([]any)
	if err != nil || !ok || index < 0 || index >= len(items) {
		return nil, fmt.Errorf("no element %v in %v", list[0], list[1])
	}
	return items[index], nil
}

func (s *stack) splitText(argument any) (any, error) {
	list, err := s.resolveArguments(argument, 2)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, part := range strings.Split(scalarText(list[1]), scalarText(list[0])) {
		out = append(out, part)
	}
	return out, nil
}

func (s *stack) findInMap(argument any) (any, error) {
	list, err := s.resolveArguments(argument, 3)
	if err != nil {
		return nil, err
	}
	value, ok := s.template.Mappings[scalarText(list[0])][scalarText(list[1])][scalarText(list[2])]
	if !ok {
		return nil, fmt.Errorf("nothing at %v", list)
	}
	return value, nil
}

func (s *stack) chooseValue(argument any) (any, error) {
	list, ok := argument.([]any)
	if !ok || len(list) != 3 {
		return nil, fmt.Errorf("wants a condition and two values")
	}
	yes, err := s.namedCondition(fmt.Sprint(list[0]))
	if err != nil {
		return nil, err
	}
	if yes {
		return s.resolveValue(list[1])
	}
	return s.resolveValue(list[2])
}

// namedCondition evaluates a named condition; no name is true.
func (s *stack) namedCondition(name string) (bool, error) {
	if name == "" {
		return true, nil
	}
	raw, ok := s.template.Conditions[name]
	if !ok {
		return false, fmt.Errorf("condition %s is not in the template", name)
	}
	return s.evaluateCondition(raw)
}

// evaluateCondition evaluates a condition function.
func (s *stack) evaluateCondition(raw any) (bool, error) {
	m, _ := raw.(map[string]any)
	name, argument, ok := parseIntrinsic(m)
	if !ok {
		return false, fmt.Errorf("%v is no condition", raw)
	}
	if name == "Condition" {
		return s.namedCondition(fmt.Sprint(argument))
	}
	list, ok := argument.([]any)
	if !ok || len(list) == 0 {
		return false, fmt.Errorf("%s: wants a list", name)
	}
	if name == "Fn::Equals" {
		sides, err := s.resolveArguments(argument, 2)
		return err == nil && scalarText(sides[0]) == scalarText(sides[1]), err
	}
	var values []bool
	for _, item := range list {
		value, err := s.evaluateCondition(item)
		if err != nil {
			return false, err
		}
		values = append(values, value)
	}
	switch name {
	case "Fn::And":
		return !slices.Contains(values, false), nil
	case "Fn::Or":
		return slices.Contains(values, true), nil
	case "Fn::Not":
		return !values[0], nil
	default:
		return false, fmt.Errorf("%s: unknown condition function", name)
	}
}

func (s *stack) resolveArguments(argument any, n int) ([]any, error) {
	value, err := s.resolveValue(argument)
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok || len(list) != n {
		return nil, fmt.Errorf("wants %d arguments", n)
	}
	return list, nil
}

func (s *stack) resolveText(argument any) (string, error) {
	value, err := s.resolveValue(argument)
	return scalarText(value), err
}

// scalarText writes a value as CloudFormation does inside strings: whole numbers without an exponent.
func scalarText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
