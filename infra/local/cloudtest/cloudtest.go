// Package cloudtest has what tests of the local environment share: an emulated AWS account that ends with the test, and
// a log that can be read while it is written.
package cloudtest

import (
	"errors"
	"testing"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/wirelog"
)

// Start runs an account that ends with the test, and says at which URL it answers.
func Start(t testing.TB, o awsemulator.Options) (*awsemulator.Cloud, string) {
	t.Helper()
	l, err := wirelog.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	o.Exchanges = l.Observe()
	c, err := awsemulator.NewCloud(o)
	if err != nil {
		t.Fatal(err)
	}
	url, err := c.StartServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return c, url
}
