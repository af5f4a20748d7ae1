package doctor

import "joiner.sh/pkg/model/findings"

// Secret is one with which metrics are sent to Prometheus, as Secrets Manager describes it.
type Secret struct {
	ARN     string // empty where none is needed
	Unknown string // why it could not be asked about
	Found   bool
	Deleted bool   // it waits for its deletion
	Key     string // customer managed key; empty for that of AWS
}

const aboutRemoteWrite = "remote write"

// CheckSecret says what keeps the secret from being read, as far as its description tells.
func CheckSecret(s Secret) findings.List {
	const create = "create it, or correct remoteWriteSecret in cdk.json and deploy again"
	const none = "no metrics are sent: "
	switch {
	case s.ARN == "":
		return nil
	case s.Unknown != "":
		return findings.List{{Level: findings.Unknown, About: aboutRemoteWrite, What: "secret " + s.ARN + " cannot be described: " + s.Unknown,
			Mend: "allow secretsmanager:DescribeSecret to whoever runs joiner doctor"}}
	case !s.Found:
		return findings.List{{Level: findings.Broken, About: aboutRemoteWrite, What: none + "there is no secret " + s.ARN, Mend: create}}
	case s.Deleted:
		return findings.List{{Level: findings.Broken, About: aboutRemoteWrite, What: none + "secret " + s.ARN + " is being deleted",
			Mend: "aws secretsmanager restore-secret --secret-id " + s.ARN}}
	case s.Key != "":
		return findings.List{{Level: findings.Warning, About: aboutRemoteWrite, What: "secret " + s.ARN + " is encrypted with " + s.Key +
			", which the function lifecycle may not use by its own role",
			Mend: "let the key's policy allow kms:Decrypt to the role of the function lifecycle"}}
	}
	return nil
}
