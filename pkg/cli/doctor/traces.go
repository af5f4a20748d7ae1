package doctor

import "slices"

// checkTraces looks at where functions send traces as they are deployed. Nothing is sent.
func (e *examination) checkTraces() {
	const check = "traces"
	i := slices.IndexFunc(e.f.Functions.List, func(f Function) bool { return f.Traces.URL != "" })
	if i < 0 {
		return
	}
	since, set := len(e.found), e.f.Functions.List[i].Traces // every function has the same
	problem := set.Problem()
	if set.Host() == "" {
		problem = "tracesURL is no URL"
	}
	if problem != "" {
		e.addFinding(Broken, check, "no traces are sent: "+problem, "correct cdk.json and deploy again")
	}
	e.found = append(e.found, CheckSecret(ForTraces(), e.f.TracesSecret)...)
	e.addFine(since, check, "traces go to "+set.Host())
}
