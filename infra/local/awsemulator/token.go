package awsemulator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const tokenPrefix = "k8s-aws-v1."

// serveTokenReview is the webhook that the API server asks about bearer tokens (POST /authenticate). A token is a
// presigned STS GetCallerIdentity URL; the account knows the secret, so it checks the signature itself.
func (c *sts) serveTokenReview(w http.ResponseWriter, r *http.Request) {
	var review authentication.TokenReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil ||
		r.Method != http.MethodPost {
		http.Error(w, "a TokenReview is wanted", http.StatusBadRequest)
		return
	}
	out := authentication.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authentication.SchemeGroupVersion.String(), Kind: "TokenReview"},
	}
	if user, err := c.authenticateToken(review.Spec.Token); err != nil {
		out.Status.Error = err.Error()
	} else {
		out.Status.Authenticated, out.Status.User = true, user
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // a client that went away is its own loss
}

// authenticateToken finds out who a token belongs to.
func (c *sts) authenticateToken(token string) (authentication.UserInfo, error) {
	none := authentication.UserInfo{}
	u, err := c.tokenURL(token)
	if err != nil {
		return none, err
	}
	caller, err := c.tokenCaller(u)
	if err != nil {
		return none, err
	}
	c.mu.Lock()
	entry, known := c.eks.entries[caller.Role]
	c.mu.Unlock()
	if !known {
		return none, fmt.Errorf("no access entry for %s", caller.Role)
	}
	return authentication.UserInfo{
		Username: strings.ReplaceAll(entry.Username, "{{SessionName}}", caller.Session),
		UID:      "aws-iam-authenticator:" + c.opt.Account + ":" + caller.UserID,
		Groups:   entry.rbacGroups(),
		Extra: map[string]authentication.ExtraValue{
			"arn": {caller.ARN()}, "canonicalArn": {caller.Role},
			"sessionName": {caller.Session}, "accessKeyId": {caller.Key},
		},
	}, nil
}

// tokenURL takes the URL out of a token and checks all of its form.
func (c *sts) tokenURL(token string) (*url.URL, error) {
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return nil, fmt.Errorf("token does not start with %s", tokenPrefix)
	}
	if len(token) > 4096 {
		return nil, fmt.Errorf("token is longer than 4096 bytes")
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("decode token: %w", err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse token: %w", err)
	}
	genuine := u.Scheme == "https" && (u.Host == "sts.amazonaws.com" || u.Host == "sts."+c.opt.Region+".amazonaws.com")
	if !genuine && (u.Scheme != "http" || u.Host != c.host) {
		return nil, fmt.Errorf("%s://%s is not STS", u.Scheme, u.Host)
	}
	if u.Path != "/" {
		return nil, fmt.Errorf("path %q in token", u.Path)
	}
	allowed := []string{
		"Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
		"X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders",
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("parse token's query: %w", err)
	}
	for key, values := range query {
		if !slices.Contains(allowed, key) || len(values) != 1 {
			return nil, fmt.Errorf("query parameter %s is not allowed, or comes twice", key)
		}
	}
	if query.Get("Action") != "GetCallerIdentity" {
		return nil, fmt.Errorf("action %q in token", query.Get("Action"))
	}
	if !slices.Contains(strings.Split(query.Get("X-Amz-SignedHeaders"), ";"), "x-k8s-aws-id") {
		return nil, fmt.Errorf("the cluster's name is not signed")
	}
	if n, err := strconv.Atoi(query.Get("X-Amz-Expires")); err != nil || n < 0 || n > 900 {
		return nil, fmt.Errorf("x-amz-expires %q in token", query.Get("X-Amz-Expires"))
	}
	return u, nil
}

// tokenCaller checks the age and the signature of a token's URL, with this cluster's name in the signed header.
func (c *sts) tokenCaller(u *url.URL) (Caller, error) {
	q := u.Query()
	at, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil {
		return Caller{}, fmt.Errorf("parse x-amz-date: %w", err)
	}
	if age := time.Since(at); age > 15*time.Minute || age < -15*time.Minute {
		return Caller{}, fmt.Errorf("token is %s old", age.Round(time.Second))
	}
	credential := strings.Split(q.Get("X-Amz-Credential"), "/")
	if len(credential) != 5 || credential[3] != "sts" {
		return Caller{}, fmt.Errorf("credential scope %q", q.Get("X-Amz-Credential"))
	}
	k, ok := c.keys.findKey(credential[0])
	if !ok || k.token != q.Get("X-Amz-Security-Token") {
		return Caller{}, fmt.Errorf("unknown access key %s", credential[0])
	}
	if time.Now().After(k.expires) {
		return Caller{}, fmt.Errorf("credentials of the token have expired")
	}
	header := http.Header{"X-K8s-Aws-Id": {c.opt.ClusterName}}
	want, err := presignedSignature(u, k, scope{region: credential[2], service: "sts"}, at, header)
	if err != nil {
		return Caller{}, fmt.Errorf("sign again: %w", err)
	}
	if want != q.Get("X-Amz-Signature") {
		return Caller{}, fmt.Errorf("signature does not match")
	}
	return k.caller, nil
}
