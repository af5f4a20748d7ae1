package doctor

import (
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/settings"
)

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
	since, problem := len(e.List), to.Problem()
	if to.Host() == "" {
		problem = "remoteWriteURL is no URL"
	}
	if problem != "" {
		e.Add(findings.Broken, aboutRemoteWrite, "no metrics are sent: "+problem, "correct cdk.json and deploy again")
	}
	e.List = append(e.List, CheckSecret(e.f.Secret)...)
	e.AddFine(since, aboutRemoteWrite, "metrics go to "+to.Host())
}
