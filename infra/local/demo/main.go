// Command joiner-local shows Joiner's main job (run) or a NodeRollout (rollout) on this machine, or keeps the
// environment up to play with (up, down).
//
// It needs what `make local` builds: the control plane, the functions and the synthesized stack.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const usage = `usage: joiner-local COMMAND
  run     show the main job, from an empty cluster to an empty cluster
  rollout show a NodeRollout: an image whose nodes never become Ready, and a good one
  up      start the environment and leave it running
  down    end what up started
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runCommand(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "joiner-local:", err)
		os.Exit(1)
	}
}

func runCommand(ctx context.Context, args []string) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	if len(args) != 1 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("one command is needed")
	}
	switch args[0] {
	case "run":
		return tellStory(ctx, root)
	case "rollout":
		return runRollout(ctx, root)
	case "up":
		return startServer(ctx, root)
	case "serve":
		return runServer(ctx, root)
	case "down":
		return stopServer(root)
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", args[0])
}

// findRoot walks up to the folder that holds cdk.json.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cdk.json")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("run this inside the repository: no folder above holds cdk.json")
		}
		dir = up
	}
}
