// Package confine holds a process to an amount of memory and a share of a processor, as Lambda does: a process that
// takes more memory is killed, one that takes more processor time is made to wait.
//
// Control groups of version 1 or 2 do it where this user may make them; elsewhere the process is watched, killed and
// stopped by signals, which is coarser. Linux only. It knows one process, not its children.
package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Limits are what a process may take.
type Limits struct {
	MemoryBytes int64
	Processors  float64
}

// memoryOfProcessor is how much memory comes with one processor in Lambda, in MiB.
const memoryOfProcessor = 1769

// LambdaLimits are those of a function of so much memory.
func LambdaLimits(memoryMB int64) Limits {
	return Limits{MemoryBytes: memoryMB << 20, Processors: float64(memoryMB) / memoryOfProcessor}
}

// Kinds of confinement.
const (
	GroupsV1 = "control groups of version 1"
	GroupsV2 = "control groups of version 2"
	Watched  = "watching and signals"
)

const (
	root       = "/sys/fs/cgroup"
	periodUSec = 100_000
)

// DetectKind says how processes are confined on this machine.
func DetectKind() string {
	for _, kind := range []string{GroupsV1, GroupsV2} {
		if g, err := makeGroup(kind, "joiner-try-"+strconv.Itoa(os.Getpid()), LambdaLimits(512)); err == nil {
			if g.removeGroup() == nil {
				return kind
			}
		}
	}
	return Watched
}

// Process is a confined process.
type Process struct {
	group group
	stop  chan struct{} // ends watching
	done  sync.WaitGroup
}

// ConfineProcess holds the process to the limits from now on. The caller must Close the Process once it has ended.
func ConfineProcess(kind string, pid int, l Limits) (*Process, error) {
	p := &Process{stop: make(chan struct{})}
	if kind == Watched {
		p.done.Go(func() { watchProcess(pid, l, p.stop) })
		return p, nil
	}
	g, err := makeGroup(kind, fmt.Sprintf("joiner-%d-%d", os.Getpid(), pid), l)
	if err != nil {
		return nil, err
	}
	p.group = g
	if err := g.addProcess(pid); err != nil {
		return nil, errors.Join(err, g.removeGroup())
	}
	return p, nil
}

// Close gives back what confinement took. The process must have ended.
func (p *Process) Close() error {
	close(p.stop)
	p.done.Wait()
	return p.group.removeGroup()
}

// group is the folders of one control group, one for each hierarchy that it is in.
type group []string

func makeGroup(kind, name string, l Limits) (g group, err error) {
	quota := max(1000, int64(l.Processors*periodUSec))
	memory, cpu := filepath.Join(root, "memory", name), filepath.Join(root, "cpu", name)
	settings := [][2]string{
		{memory, "memory.limit_in_bytes=" + strconv.FormatInt(l.MemoryBytes, 10)},
		{cpu, "cpu.cfs_period_us=" + strconv.Itoa(periodUSec)},
		{cpu, "cpu.cfs_quota_us=" + strconv.FormatInt(quota, 10)},
	}
	g = group{memory, cpu}
	if kind == GroupsV2 {
		one := filepath.Join(root, name)
		settings = [][2]string{
			{one, "memory.max=" + strconv.FormatInt(l.MemoryBytes, 10)},
			{one, "memory.swap.max=0"},
			{one, fmt.Sprintf("cpu.max=%d %d", quota, periodUSec)},
		}
		g = group{one}
	}
	for _, dir := range g {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("make control group: %w", err), g.removeGroup())
		}
	}
	for _, s := range settings {
		file, value, _ := strings.Cut(s[1], "=")
		if err := os.WriteFile(filepath.Join(s[0], file), []byte(value), 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("limit control group: %w", err), g.removeGroup())
		}
	}
	return g, nil
}

func (g group) addProcess(pid int) error {
	for _, dir := range g {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("put process %d into its control group: %w", pid, err)
		}
	}
	return nil
}

func (g group) removeGroup() error {
	var errs []error
	for _, dir := range g {
		// A group is a folder that rmdir removes with the files in it.
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove control group: %w", err))
		}
	}
	return errors.Join(errs...)
}
