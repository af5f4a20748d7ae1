package settings

import "regexp"

// Which series Prometheus is sent.
const (
	RemoteWriteCluster = "cluster"
	RemoteWriteNodes   = "nodes"
	RemoteWriteAll     = "all"
)

// RemoteWrite tells where and how metrics are sent to Prometheus.
type RemoteWrite struct {
	URL    string // empty: nowhere
	Secret string // ARN; empty: requests to Amazon Managed Service for Prometheus are signed, others say nobody's name
	Detail string // cluster, nodes or all
}

func remoteWriteKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		textSetting(Setting{Name: "remoteWriteURL", Env: "REMOTE_WRITE_URL", Unit: "URL",
			Allowed: "an https URL with its path, such as that of a workspace of Amazon Managed Service for Prometheus; http as well where nothing authenticates",
			Doc:     "Where lifecycle sends Karpenter's metrics once a minute, by Prometheus remote write. Joiner signs requests to Amazon Managed Service for Prometheus. Without it metrics go to CloudWatch alone."},
			func(v *Values) *string { return &v.RemoteWrite.URL }, matches(`^https?://[^/\s]+(/[^\s]*)?$`)),
		textSetting(Setting{Name: "remoteWriteSecret", Env: "REMOTE_WRITE_SECRET", Unit: "ARN",
			Allowed: "the ARN of a secret of AWS Secrets Manager",
			Doc:     "A secret that authenticates requests to other services: a bearer token, or JSON with token, username and password, or certificate and key. ca may be beside each, where the endpoint has a private certificate authority."},
			func(v *Values) *string { return &v.RemoteWrite.Secret }, matches(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+$`)),
		choiceSetting(Setting{Name: "remoteWriteDetail", Env: "REMOTE_WRITE_DETAIL", Default: RemoteWriteNodes, Unit: "word",
			Doc: "Which series are sent: some hundred for the cluster, besides about 40 for each node, or all, with those of each pod and each offering of EC2."},
			[]string{RemoteWriteCluster, RemoteWriteNodes, RemoteWriteAll},
			func(v *Values) *string { return &v.RemoteWrite.Detail }),
	}
}

// Problem says what is wrong with the settings together, empty for nothing.
func (r RemoteWrite) Problem() string {
	plain := regexp.MustCompile(`^http://`).MatchString(r.URL)
	switch {
	case r.URL == "":
		return ""
	case plain && (r.Secret != "" || r.Signed()):
		return "remoteWriteURL is http, over which anybody can read what authenticates: use https"
	case r.Signed() && !regexp.MustCompile(`/workspaces/ws-[0-9a-f-]+/api/v1/remote_write$`).MatchString(r.URL):
		return "remoteWriteURL is of Amazon Managed Service for Prometheus and no workspace's: " +
			"it ends with /workspaces/ws-ID/api/v1/remote_write"
	case r.Signed() && r.Secret != "":
		return "remoteWriteURL is of Amazon Managed Service for Prometheus, which takes signed requests alone: " +
			"remove remoteWriteSecret"
	}
	return ""
}

// Host is the host of the URL, with its port; empty for a text that is no URL.
func (r RemoteWrite) Host() string { return hostOf(r.URL) }

func hostOf(url string) string {
	m := regexp.MustCompile(`^https?://([A-Za-z0-9.:-]+)(/|$)`).FindStringSubmatch(url)
	if m == nil {
		return ""
	}
	return m[1]
}

// Signed reports whether requests are signed with the credentials of the function, as Amazon Managed Service for
// Prometheus takes them.
func (r RemoteWrite) Signed() bool {
	return regexp.MustCompile(`^https?://([a-z0-9-]+\.)?aps-workspaces[.-]`).MatchString(r.URL)
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
