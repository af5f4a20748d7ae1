package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const parentPoll = 200 * time.Millisecond

// watchParent returns a channel that is closed when the process ends; with pid 0 never.
func watchParent(pid int) <-chan struct{} {
	ended := make(chan struct{})
	if pid <= 0 {
		return ended
	}
	isParent := os.Getppid() == pid
	go func() {
		defer close(ended)
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for isAlive(pid, isParent) {
			<-tick.C
		}
	}()
	return ended
}

// isAlive says whether the process lives. A direct parent is known by the kernel's word, which is right even while that
// parent is a zombie or its number belongs to somebody else.
func isAlive(pid int, isParent bool) bool {
	if isParent {
		return os.Getppid() == pid
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
