package doctor

import "joiner.sh/pkg/settings"

// checkRemoteWrite looks at where functions send metrics as they are deployed. Nothing is sent.
func (e *examination) checkRemoteWrite() {
	for _, f := range e.f.Functions.List {
		if f.RemoteWrite.URL != "" {
			e.checkDestination(f.RemoteWrite)
			return // every function has the same
		}
	}
}

func (e *examination) checkDestination(to settings.RemoteWrite) {
	since, problem := len(e.found), to.Problem()
	if to.Host() == "" {
		problem = "remoteWriteURL is no URL"
	}
	if problem != "" {
		e.addFinding(Broken, aboutRemoteWrite, "no metrics are sent: "+problem, "correct cdk.json and deploy again")
	}
	e.found = append(e.found, CheckSecret(e.f.Secret)...)
	e.addFine(since, aboutRemoteWrite, "metrics go to "+to.Host())
}
