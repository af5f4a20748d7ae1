package doctor

// Secret is one with which metrics or traces are sent, as Secrets Manager describes it.
type Secret struct {
	ARN     string // empty where none is needed
	Unknown string // why it could not be asked about
	Found   bool
	Deleted bool   // it waits for its deletion
	Key     string // customer managed key; empty for that of AWS
}

// SecretUse is what a secret is for.
type SecretUse struct {
	check, sends, setting, readers string
}

// ForRemoteWrite is the use of the secret with which metrics are sent to Prometheus.
func ForRemoteWrite() SecretUse {
	return SecretUse{"remote write", "metrics", "remoteWriteSecret", "the function lifecycle"}
}

// ForTraces is the use of the secret with which traces are sent.
func ForTraces() SecretUse { return SecretUse{"traces", "traces", "tracesSecret", "each function"} }

// CheckSecret says what keeps the secret from being read, as far as its description tells.
func CheckSecret(use SecretUse, s Secret) []Finding {
	create := "create it, or correct " + use.setting + " in cdk.json and deploy again"
	none := "no " + use.sends + " are sent: "
	switch {
	case s.ARN == "":
		return nil
	case s.Unknown != "":
		return []Finding{{Level: Unknown, Check: use.check, What: "secret " + s.ARN + " cannot be described: " + s.Unknown,
			Mend: "allow secretsmanager:DescribeSecret to whoever runs joiner doctor"}}
	case !s.Found:
		return []Finding{{Level: Broken, Check: use.check, What: none + "there is no secret " + s.ARN, Mend: create}}
	case s.Deleted:
		return []Finding{{Level: Broken, Check: use.check, What: none + "secret " + s.ARN + " is being deleted",
			Mend: "aws secretsmanager restore-secret --secret-id " + s.ARN}}
	case s.Key != "":
		return []Finding{{Level: Warning, Check: use.check, What: "secret " + s.ARN + " is encrypted with " + s.Key +
			", which " + use.readers + " may not use by its own role",
			Mend: "let the key's policy allow kms:Decrypt to the role of " + use.readers}}
	}
	return nil
}
