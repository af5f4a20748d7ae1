package doctor

// destination is where functions send metrics or traces.
type destination interface {
	Problem() string // why nothing is sent
	Host() string    // empty where its URL is none
}

// checkRemoteWrite looks at where functions send metrics as they are deployed. Nothing is sent.
func (e *examination) checkRemoteWrite() {
	for _, f := range e.f.Functions.List {
		if f.RemoteWrite.URL != "" {
			e.checkDestination(f.RemoteWrite, "remoteWriteURL", ForRemoteWrite(), e.f.Secret)
			return // every function has the same
		}
	}
}

// checkTraces looks at where functions send traces as they are deployed. Nothing is sent.
func (e *examination) checkTraces() {
	for _, f := range e.f.Functions.List {
		if f.Traces.URL != "" {
			e.checkDestination(f.Traces, "tracesURL", ForTraces(), e.f.TracesSecret)
			return // every function has the same
		}
	}
}

func (e *examination) checkDestination(to destination, setting string, use SecretUse, s Secret) {
	since, problem := len(e.found), to.Problem()
	if to.Host() == "" {
		problem = setting + " is no URL"
	}
	if problem != "" {
		e.addFinding(Broken, use.check, "no "+use.sends+" are sent: "+problem, "correct cdk.json and deploy again")
	}
	e.found = append(e.found, CheckSecret(use, s)...)
	e.addFine(since, use.check, use.sends+" go to "+to.Host())
}
