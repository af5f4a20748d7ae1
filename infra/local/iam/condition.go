package iam

import (
	"fmt"
	"strings"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// test is one line of a condition: an operator over one key.
type test struct {
	key      string // lower case, as all keys are here
	values   []string
	like     func(pattern, value string) bool
	negated  bool
	ifExists bool
	null     bool // the operator Null: whether the key is absent
	set      string
}

// Prefixes of operators for keys of several values.
const (
	forAll = "ForAllValues:"
	forAny = "ForAnyValue:"
)

// newTest reads one line of a condition. What IAM knows and this package does not is an error.
func newTest(operator, key string, values []any) (test, error) {
	t := test{key: strings.ToLower(key)}
	if !knownKey(t.key) {
		return t, fmt.Errorf("condition key %s is not known here", key)
	}
	for _, v := range values {
		text := fmt.Sprint(v)
		if strings.Contains(text, "${") {
			return t, fmt.Errorf("condition %s %s: policy variables are not known here", operator, key)
		}
		t.values = append(t.values, text)
	}
	name := operator
	for _, prefix := range []string{forAll, forAny} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			name, t.set = rest, prefix
		}
	}
	if rest, ok := strings.CutSuffix(name, "IfExists"); ok {
		name, t.ifExists = rest, true
	}
	if name == "Null" {
		t.null = true
		return t, t.checkNull(operator)
	}
	for _, kind := range []string{"String", "Arn"} {
		if rest, ok := strings.CutPrefix(name, kind+"Not"); ok {
			name, t.negated = kind+rest, true
		}
	}
	if t.like = comparisonOperators()[name]; t.like == nil {
		return t, fmt.Errorf("condition operator %s is not known here", operator)
	}
	if (t.set != "") != multiValued(t.key) {
		return t, fmt.Errorf("condition operator %s does not go with key %s: %s and %s are for keys of several values",
			operator, key, forAll, forAny)
	}
	return t, nil
}

func (t test) checkNull(operator string) error {
	if t.set != "" || t.ifExists || len(t.values) != 1 || (t.values[0] != "true" && t.values[0] != "false") {
		return fmt.Errorf("condition operator %s on %s: Null takes true or false alone", operator, t.key)
	}
	return nil
}

// comparisonOperators are the operators without their Not, prefix and suffix.
func comparisonOperators() map[string]func(pattern, value string) bool {
	equal := func(a, b string) bool { return a == b }
	return map[string]func(string, string) bool{
		"StringEquals": equal, "StringEqualsIgnoreCase": strings.EqualFold, "StringLike": assembly.MatchesWildcards,
		"ArnLike": arnLike, "ArnEquals": arnLike, // the two are the same to IAM
		"Bool": strings.EqualFold,
	}
}

// matchesKeys weighs the test. A key that the request does not have fails a positive test and passes a negated one.
func (t test) matchesKeys(keys map[string][]string) bool {
	have, present := keys[t.key]
	fits := func(v string) bool {
		return t.negated != anyOf(t.values, func(pattern string) bool { return t.like(pattern, v) })
	}
	switch {
	case t.null:
		return present != (t.values[0] == "true")
	case !present && t.ifExists:
		return true
	case t.set == forAll:
		return allOf(have, fits) // also of none: IAM's ForAllValues is true when the key is absent
	case t.set == forAny:
		return anyOf(have, fits)
	case !present:
		return t.negated
	}
	return allOf(have, fits)
}

// multiValued tells the keys that hold a list.
func multiValued(key string) bool { return key == "aws:tagkeys" }

// knownKey tells the condition keys that the emulated account hands over. A key it does not would be absent in every
// request, so a misspelt one is found when the policies are read.
func knownKey(key string) bool {
	for _, tag := range []string{"aws:requesttag/", "aws:resourcetag/", "ec2:resourcetag/", "iam:resourcetag/"} {
		if strings.HasPrefix(key, tag) {
			return true
		}
	}
	switch key {
	case "aws:tagkeys", "aws:requestedregion", "aws:securetransport", "aws:principalarn", "aws:principalaccount",
		"ec2:createaction", "iam:passedtoservice", "iam:awsservicename",
		"arc-zonal-shift:resourceidentifier", "kms:viaservice", "lambda:sourcefunctionarn":
		return true
	}
	return false
}

// lowerKeys returns the keys of a request in lower case: IAM does not tell capitals of keys apart.
func lowerKeys(keys map[string][]string) map[string][]string {
	out := make(map[string][]string, len(keys))
	for k, v := range keys {
		out[strings.ToLower(k)] = v
	}
	return out
}
