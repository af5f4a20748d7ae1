package accept

import _ "embed" // the template

// QuestionStack is the template of the stack that --questions makes: a role, a function with a version, a custom resource
// that refuses an update on request, an alarm that breaches, and a launch template of a t4g.nano that ends itself after
// ten minutes.
//
//go:embed questions.json
var QuestionStack string

// QuestionsText says what --questions makes and what it costs.
func QuestionsText(stack string) string {
	return "This makes the stack " + stack + ", without Joiner and without a cluster: a role, a function, an alarm, a launch template; and, of the default\n" +
		"VPC, at most one t4g.nano, which ends itself after ten minutes. It costs less than USD 0.01, takes about ten minutes and removes everything.\n"
}

// Answer is what an account answered to one question.
type Answer struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}
