// Command joiner is Joiner on a person's terminal: it plans as the functions do, without a cluster.
package main

import (
	"os"

	"joiner.sh/pkg/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}
