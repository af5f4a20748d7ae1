package settings

import "regexp"

// Traces is where spans of OpenTelemetry are sent.
type Traces struct {
	URL    string // empty: nowhere, and none are collected
	Secret string // ARN; empty: requests say nobody's name
}

func tracesKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		textSetting(Setting{Name: "tracesURL", Env: "TRACES_URL", Unit: "URL",
			Allowed: "an https URL with its path, as a rule /v1/traces; http as well where nothing authenticates",
			Doc:     "Where the functions send OpenTelemetry traces of their invocations: OTLP over HTTP, to a collector."},
			func(v *Values) *string { return &v.Traces.URL }, isEndpoint),
		textSetting(Setting{Name: "tracesSecret", Env: "TRACES_SECRET", Unit: "ARN",
			Allowed: "the ARN of a secret of AWS Secrets Manager",
			Doc:     "A secret that authenticates these requests, in the format of remoteWriteSecret."},
			func(v *Values) *string { return &v.Traces.Secret }, isSecretARN),
	}
}

// Problem says what is wrong with the settings together, empty for nothing.
func (t Traces) Problem() string {
	switch {
	case t.URL == "":
		return ""
	case t.Secret != "" && regexp.MustCompile(`^http://`).MatchString(t.URL):
		return "tracesURL is http, over which anybody can read what authenticates: use https"
	case regexp.MustCompile(`^https?://xray\.[a-z0-9-]+\.`).MatchString(t.URL):
		return "tracesURL is of AWS X-Ray, which takes signed requests alone: " +
			"send to a collector, whose extension sigv4auth signs them"
	case !regexp.MustCompile(`^https?://[^/]+/.`).MatchString(t.URL):
		return "tracesURL has no path: as a rule it ends with /v1/traces"
	}
	return ""
}

// Host is the host of the URL, with its port; empty for a text that is no URL.
func (t Traces) Host() string { return hostOf(t.URL) }
