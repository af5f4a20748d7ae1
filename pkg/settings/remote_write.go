package settings

import "regexp"

// How requests to Prometheus say who sends them.
const (
	RemoteWriteSigV4  = "sigv4"
	RemoteWriteSecret = "secret"
	RemoteWriteNoAuth = "none"
)

// Which series Prometheus is sent.
const (
	RemoteWriteCluster = "cluster"
	RemoteWriteNodes   = "nodes"
	RemoteWriteAll     = "all"
)

// RemoteWrite is where and how metrics are sent to Prometheus.
type RemoteWrite struct {
	URL    string // empty: nowhere
	Auth   string // sigv4, secret or none
	Secret string // ARN
	Detail string // cluster, nodes or all
}

func remoteWriteKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		textSetting(Setting{Name: "remoteWriteURL", Env: "REMOTE_WRITE_URL", Unit: "URL",
			Allowed: "an https URL with its path, such as that of a workspace of Amazon Managed Service for Prometheus; with remoteWriteAuth none http as well",
			Doc:     "Where lifecycle sends Karpenter's metrics once a minute, by Prometheus remote write. Without it they go to CloudWatch alone."},
			func(v *Values) *string { return &v.RemoteWrite.URL }, isEndpoint),
		choiceSetting(Setting{Name: "remoteWriteAuth", Env: "REMOTE_WRITE_AUTH", Default: RemoteWriteSigV4, Unit: "word",
			Doc: "How requests are authenticated: signed for Amazon Managed Service for Prometheus, by remoteWriteSecret, or not at all."},
			[]string{RemoteWriteSigV4, RemoteWriteSecret, RemoteWriteNoAuth},
			func(v *Values, s string) { v.RemoteWrite.Auth = s }),
		textSetting(Setting{Name: "remoteWriteSecret", Env: "REMOTE_WRITE_SECRET", Unit: "ARN",
			Allowed: "the ARN of a secret of AWS Secrets Manager",
			Doc:     "The secret for remoteWriteAuth secret: a bearer token, or JSON with token, username and password, or certificate and key, each with ca where the endpoint has a private certificate authority."},
			func(v *Values) *string { return &v.RemoteWrite.Secret }, isSecretARN),
		choiceSetting(Setting{Name: "remoteWriteDetail", Env: "REMOTE_WRITE_DETAIL", Default: RemoteWriteNodes, Unit: "word",
			Doc: "Which series are sent: some hundred for the cluster, besides about 40 for each node, or all, with those of each pod and each offering of EC2."},
			[]string{RemoteWriteCluster, RemoteWriteNodes, RemoteWriteAll},
			func(v *Values, s string) { v.RemoteWrite.Detail = s }),
	}
}

// Problem says what is wrong with the settings together, empty for nothing.
func (r RemoteWrite) Problem() string {
	plain := regexp.MustCompile(`^http://`).MatchString(r.URL)
	switch {
	case r.URL == "":
		return ""
	case r.Auth == RemoteWriteSecret && r.Secret == "":
		return "remoteWriteAuth is secret: set remoteWriteSecret"
	case plain && r.Auth != RemoteWriteNoAuth:
		return "remoteWriteURL is http, over which anybody can read what authenticates: use https, or remoteWriteAuth none"
	}
	return ""
}

// WorkspaceID is the workspace of Amazon Managed Service for Prometheus that the URL is of, and its region; empty where
// it is of none.
func (r RemoteWrite) WorkspaceID() (workspace, region string) {
	m := regexp.MustCompile(`^https://aps-workspaces(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/workspaces/(ws-[0-9a-f-]+)/`).
		FindStringSubmatch(r.URL)
	if m == nil {
		return "", ""
	}
	return m[2], m[1]
}

func isEndpoint(s string) bool {
	return regexp.MustCompile(`^https?://[^/\s]+(/[^\s]*)?$`).MatchString(s)
}

func isSecretARN(s string) bool {
	return regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+$`).
		MatchString(s)
}
