// Command joiner-local shows Joiner's main job (run), a NodeRollout (rollout) or devices by DRA (devices) on this
// machine, keeps the environment up to play with (up, down), or tries the stack and the functions of a release (try).
//
// It needs what `make local` builds: the control plane, and but for try the functions and the synthesized stack.
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
  devices show pods that claim devices of DRA drivers, which publish them late, in parts, too few or never
  up      start the environment and leave it running
  down    end what up started
  try ASSEMBLY MANIFEST
          run the functions of another synthesized stack until pods run on nodes of a manifest's NodePool default
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
	if len(args) == 3 && args[0] == "try" {
		return tryStack(ctx, root, args[1], args[2])
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
	case "devices":
		return showDevices(ctx, root)
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
