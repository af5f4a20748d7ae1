// Package cloudtest has what tests of the local environment share: an emulated AWS account that ends with the test, and
// a log that can be read while it is written.
package cloudtest

import (
	"testing"

	"joiner.sh/infra/local/awsemulator"
)

// Start runs an account that ends with the test, and says at which URL it answers.
func Start(t testing.TB, o awsemulator.Options) (*awsemulator.Cloud, string) {
	t.Helper()
	c, err := awsemulator.NewCloud(o)
	if err != nil {
		t.Fatal(err)
	}
	url, err := c.StartServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, url
}
