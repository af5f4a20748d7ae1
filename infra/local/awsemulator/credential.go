package awsemulator

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Caller is who signed a request: the session of a role.
type Caller struct {
	Role    string // arn:aws:iam::…:role/path/name
	Session string
	Key     string // access key id
	UserID  string // AROA…:session
	// Function is the ARN of the Lambda function whose code made the call; empty for everybody else, Lambda itself
	// included when it uses the role of a function.
	Function string
}

// IsInstance reports whether the caller is the software of an instance, with the credentials of its profile.
func (c Caller) IsInstance() bool { return strings.HasPrefix(c.Session, "i-") }

// ARN is the caller as STS names it: arn:aws:sts::…:assumed-role/name/session. A path of the role is not in it.
func (c Caller) ARN() string {
	parts := strings.SplitN(c.Role, ":", 6)
	if len(parts) < 6 {
		return c.Role
	}
	name := parts[5][strings.LastIndex(parts[5], "/")+1:]
	return fmt.Sprintf("arn:%s:sts::%s:assumed-role/%s/%s", parts[1], parts[4], name, c.Session)
}

type key struct {
	caller  Caller
	secret  string
	token   string
	expires time.Time
}

// keyBook holds the access keys that were handed out.
type keyBook struct {
	mu   sync.Mutex
	keys map[string]key
}

func (b *keyBook) findKey(id string) (key, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, ok := b.keys[id]
	return k, ok
}

// IssueCredentials makes credentials for a session of a role (an ARN, or a bare name of this account) that last for
// the time given; zero means one hour.
func (c *sts) IssueCredentials(role, session string, ttl time.Duration) aws.Credentials {
	return c.addKey(role, session, "", ttl)
}

// FunctionCredentials makes the credentials that Lambda hands to the code of a function: a session of its role that is
// named after the function and carries the function's ARN into every call.
func (c *sts) FunctionCredentials(role, function string) aws.Credentials {
	return c.addKey(role, function, c.resourceARN("lambda", "function:"+function), 0)
}

func (c *sts) addKey(role, session, function string, ttl time.Duration) aws.Credentials {
	if !strings.HasPrefix(role, "arn:") {
		role = "arn:aws:iam::" + c.opt.Account + ":role/" + role
	}
	if ttl == 0 {
		ttl = time.Hour
	}
	id := "ASIA" + strings.ToUpper(randomHex(8))
	k := key{
		caller: Caller{
			Role: role, Session: session, Key: id,
			UserID: "AROA" + strings.ToUpper(hash16(role)) + ":" + session, Function: function,
		},
		secret: randomBase64(30), token: randomBase64(120), expires: time.Now().Add(ttl),
	}
	c.keys.mu.Lock()
	c.keys.keys[id] = k
	c.keys.mu.Unlock()
	return aws.Credentials{
		AccessKeyID: id, SecretAccessKey: k.secret, SessionToken: k.token,
		Source: "cloud", CanExpire: true, Expires: k.expires, AccountID: c.opt.Account,
	}
}

// ExpireCredentials ends the life of all credentials of a role now (of every role if role is empty) and returns how
// many.
func (c *sts) ExpireCredentials(role string) int {
	c.keys.mu.Lock()
	defer c.keys.mu.Unlock()
	n := 0
	for id, k := range c.keys.keys {
		if role == "" || k.caller.Role == role || strings.HasSuffix(k.caller.Role, "/"+role) {
			k.expires = time.Now().Add(-time.Second)
			c.keys.keys[id] = k
			n++
		}
	}
	return n
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its documentation
	return hex.EncodeToString(b)
}

func randomBase64(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its documentation
	return base64.StdEncoding.EncodeToString(b)
}
