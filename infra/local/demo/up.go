package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"joiner.sh/infra/local/env"
)

// served is what up leaves behind for down and for people.
type served struct {
	PID        int    `json:"pid"`
	AWS        string `json:"aws"`
	Kubeconfig string `json:"kubeconfig"`
}

func statePath(root string) string { return filepath.Join(root, ".local", "run", "up.json") }

// startServer starts serve in the background, waits until it is ready and says how to use it.
func startServer(ctx context.Context, root string) error {
	if s, ok := readServed(root); ok {
		fmt.Println("the environment is up already")
		s.printHelp()
		return nil
	}
	logs, err := openLog(logPath(root))
	if err != nil {
		return err
	}
	defer logs.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "serve")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, logs, logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the environment: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	fmt.Println("== the environment comes up")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("the environment ended while starting, its log is %s: %w", logs.Name(), err)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), cmd.Process.Signal(syscall.SIGTERM))
		case <-tick.C:
			if s, ok := readServed(root); ok {
				s.printHelp()
				fmt.Printf("logs of the functions: %s\n", logs.Name())
				return nil
			}
		}
	}
}

// runServer runs the environment itself: it runs until it is told to end.
func runServer(ctx context.Context, root string) (err error) {
	e, err := env.StartEnvironment(ctx, env.Options{Root: root, Addr: "127.0.0.1:0", Minute: time.Minute,
		Progress:    os.Stdout,
		FunctionLog: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(statePath(root)), e.Close()) }()
	b, err := json.Marshal(served{PID: os.Getpid(), AWS: e.Cloud.URL(), Kubeconfig: e.Plane.KubeconfigPath()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(statePath(root), b, 0o600); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// stopServer ends what up started.
func stopServer(root string) error {
	s, ok := readServed(root)
	if !ok {
		fmt.Println("nothing is up")
		return nil
	}
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", s.PID, err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if syscall.Kill(s.PID, 0) != nil {
			fmt.Println("the environment is down")
			return nil
		}
	}
	return fmt.Errorf("process %d did not end within a minute", s.PID)
}

// readServed reads the state and checks that the process lives.
func readServed(root string) (served, bool) {
	var s served
	b, err := os.ReadFile(statePath(root))
	if err != nil || json.Unmarshal(b, &s) != nil {
		return s, false
	}
	return s, syscall.Kill(s.PID, 0) == nil
}

func (s served) printHelp() {
	fmt.Printf(`
use it:
  export KUBECONFIG=%[1]s
  kubectl get nodepools,nodeclaims,nodes
  kubectl apply -f infra/local/demo/manifests/nodepool-v1.yaml -f infra/local/demo/manifests/inflate-spot.yaml
  export AWS_ENDPOINT_URL=%[2]s AWS_REGION=us-west-2      (what the functions use; requests must be signed)
what happens in AWS:
  curl %[2]s/_local/instances
  curl %[2]s/_local/calls?service=ec2
send an event:
  curl -X POST %[2]s/_local/instances/INSTANCE_ID/interrupt     spot interruption, reclaimed after two minutes
  curl -X POST %[2]s/_local/instances/INSTANCE_ID/rebalance     rebalance recommendation
  curl -X POST %[2]s/_local/instances/INSTANCE_ID/terminate     state change: terminated behind our back
  curl -X POST %[2]s/_local/instances/INSTANCE_ID/stop          state change: stopped behind our back
  curl -d '{"capacityType":"spot","instanceType":"c5.large","zone":"us-west-2a","limit":0}' %[2]s/_local/capacity     unavailable
end it:
  make down
`, s.Kubeconfig, s.AWS)
}
