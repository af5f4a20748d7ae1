package accept

import (
	"cmp"
	_ "embed" // the template
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

// QuestionStack is the template of the stack that --questions makes: a role, a function with a version that goes and stays
// as those of Joiner do, a custom resource that refuses an update on request, an alarm that breaches, and a launch
// template of a t4g.nano that ends itself after ten minutes.
//
//go:embed questions.json
var QuestionStack string

// QuestionsText says what --questions makes and what it costs.
func QuestionsText(stack string) string {
	return "This makes the stack " + stack + ", without Joiner and without a cluster: a role, a function, an alarm, a launch template; and, of the default\n" +
		"VPC, at most one t4g.nano, which ends itself after ten minutes. It costs less than USD 0.01, takes about ten minutes and removes everything.\n" +
		"Should it end early, the stack is deleted by: aws cloudformation delete-stack --stack-name " + stack + "\n"
}

// mostOffered caps the types that the fleet is offered.
const mostOffered = 250

// OfferedTypes returns the types that the fleet is offered: the cheapest that the image of the stack runs on. No more
// is paid than what the first of them costs.
func OfferedTypes(load instancetypes.Catalog) []string {
	all := lists.Where(load.Types,
		func(f instancetypes.Facts) bool { return f.OnDemandUSD > 0 && slices.Contains(f.Arch, "arm64") })
	slices.SortFunc(all, func(a, b instancetypes.Facts) int {
		return cmp.Or(cmp.Compare(a.OnDemandUSD, b.OnDemandUSD), cmp.Compare(a.Name, b.Name))
	})
	return lists.Of(all[:min(mostOffered, len(all))], func(f instancetypes.Facts) string { return f.Name })
}

// Answer is an account's answer to one question.
type Answer struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}
