package doctor

import "slices"

// checkRemoteWrite looks at where functions send metrics as they are deployed. Nothing is sent.
func (e *examination) checkRemoteWrite() {
	const check = "remote write"
	i := slices.IndexFunc(e.f.Functions.List, func(f Function) bool { return f.RemoteWrite.URL != "" })
	if i < 0 {
		return
	}
	since, set := len(e.found), e.f.Functions.List[i].RemoteWrite // every function has the same
	problem := set.Problem()
	if set.Host() == "" {
		problem = "remoteWriteURL is no URL"
	}
	if problem != "" {
		e.addFinding(Broken, check, "no metrics are sent: "+problem, "correct cdk.json and deploy again")
	}
	e.found = append(e.found, CheckSecret(ForRemoteWrite(), e.f.Secret)...)
	e.addFine(since, check, "metrics go to "+set.Host())
}
