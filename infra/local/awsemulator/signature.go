package awsemulator

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"joiner.sh/infra/local/awsemulator/wire"
)

// scope is the credential scope of a SigV4 signature, with what else the Authorization header says.
type scope struct {
	key, region, service string
	signedHeaders        []string
	signature            string
}

func parseAuthorization(header string) (scope, bool) {
	rest, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !ok {
		return scope{}, false
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}
	credential := strings.Split(fields["Credential"], "/")
	if len(credential) != 5 || fields["Signature"] == "" {
		return scope{}, false
	}
	return scope{
		key: credential[0], region: credential[2], service: credential[3],
		signedHeaders: strings.Split(fields["SignedHeaders"], ";"), signature: fields["Signature"],
	}, true
}

// verdict of a signature check; every protocol has its own code for each.
type verdict int

const (
	authentic verdict = iota
	unsigned
	unknownKey
	wrongSignature
	expiredToken
	skewedClock
)

// verifySignature recomputes the signature of r with the secret that belongs to its access key.
func (c *sts) verifySignature(r *http.Request, s scope, body []byte) (Caller, verdict) {
	k, ok := c.keys.findKey(s.key)
	if !ok || r.Header.Get("X-Amz-Security-Token") != k.token {
		return Caller{}, unknownKey
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return Caller{}, wrongSignature
	}
	digest := sha256.Sum256(body)
	payload := hex.EncodeToString(digest[:])
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != "" {
		if len(claimed) == len(payload) && claimed != payload {
			return Caller{}, wrongSignature // a hash was signed, and it is not that of this body
		}
		payload = claimed
	}
	if !hmac.Equal([]byte(s.signature), []byte(signRequest(r, s, k, payload, at))) {
		return Caller{}, wrongSignature
	}
	if d := time.Since(at); d > 15*time.Minute || d < -15*time.Minute {
		return Caller{}, skewedClock
	}
	if time.Now().After(k.expires) {
		return Caller{}, expiredToken
	}
	return k.caller, authentic
}

// signRequest returns the signature that r should have: a copy with only the signed headers is signed again.
func signRequest(r *http.Request, s scope, k key, payload string, at time.Time) string {
	again := &http.Request{Method: r.Method, Host: r.Host, Header: http.Header{}}
	u := *r.URL
	u.Scheme, u.Host = "http", r.Host
	again.URL = &u
	for _, name := range s.signedHeaders {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = s.service == "s3" })
	err := signer.SignHTTP(context.Background(), k.awsCredentials(), again, payload, s.service, s.region, at)
	if err != nil {
		return ""
	}
	signed, _ := parseAuthorization(again.Header.Get("Authorization"))
	return signed.signature
}

func (k key) awsCredentials() aws.Credentials {
	return aws.Credentials{AccessKeyID: k.caller.Key, SecretAccessKey: k.secret, SessionToken: k.token}
}

// signatureFailure is the failure for a verdict in the words of a protocol.
func signatureFailure(v verdict, p wire.Protocol) *wire.Failure {
	const invalid = "The request signature we calculated does not match the signature you provided."
	switch p {
	case wire.EC2Query:
		switch v {
		case expiredToken, skewedClock: // EC2's own word for both
			return wire.Fail(400, "RequestExpired", "Request has expired.")
		case unsigned:
			return wire.Fail(401, "AuthFailure", "AWS was not able to authenticate the request: access credentials are missing")
		}
		return wire.Fail(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
	case wire.JSON, wire.RestJSON:
		status := map[wire.Protocol]int{wire.JSON: 400, wire.RestJSON: 403}[p]
		switch v {
		case expiredToken:
			return wire.Fail(status, "ExpiredTokenException", "The security token included in the request is expired")
		case unknownKey:
			return wire.Fail(status, "UnrecognizedClientException",
				"The security token included in the request is invalid.")
		case unsigned:
			return wire.Fail(status, "MissingAuthenticationTokenException", "Missing Authentication Token")
		}
		return wire.Fail(status, "InvalidSignatureException", invalid)
	case wire.RestXML:
		switch v {
		case expiredToken:
			return wire.Fail(400, "ExpiredToken", "The provided token has expired.")
		case unknownKey:
			return wire.Fail(403, "InvalidAccessKeyId",
				"The AWS Access Key Id you provided does not exist in our records.")
		case unsigned:
			return wire.Fail(403, "AccessDenied", "Access Denied")
		case skewedClock:
			return wire.Fail(403, "RequestTimeTooSkewed",
				"The difference between the request time and the current time is too large.")
		}
		return wire.Fail(403, "SignatureDoesNotMatch", invalid)
	}
	switch v {
	case expiredToken:
		return wire.Fail(403, "ExpiredToken", "The security token included in the request is expired")
	case unknownKey:
		return wire.Fail(403, "InvalidClientTokenId", "The security token included in the request is invalid.")
	case unsigned:
		return wire.Fail(403, "MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	return wire.Fail(403, "SignatureDoesNotMatch", invalid)
}

// presignedSignature recomputes the signature of a presigned URL that was signed with one extra header.
func presignedSignature(u *url.URL, k key, s scope, at time.Time, header http.Header) (string, error) {
	again := *u
	q := again.Query()
	for _, name := range []string{"Algorithm", "Credential", "Date", "SignedHeaders", "Signature", "Security-Token"} {
		q.Del("X-Amz-" + name)
	}
	again.RawQuery = q.Encode()
	r := &http.Request{Method: http.MethodGet, URL: &again, Host: u.Host, Header: header}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	out, _, err := v4.NewSigner().PresignHTTP(context.Background(), k.awsCredentials(), r, empty,
		s.service, s.region, at)
	if err != nil {
		return "", err
	}
	signed, err := url.Parse(out)
	if err != nil {
		return "", err
	}
	return signed.Query().Get("X-Amz-Signature"), nil
}
