package confine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc, the same on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ReadUsage reads what a process took. It errs once the process is gone.
func ReadUsage(pid int) (u Usage, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, fmt.Errorf("read usage: %w", err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, fmt.Errorf("read usage: %w", err)
	}
	if u.CPU, err = processorTime(string(stat)); err != nil {
		return u, fmt.Errorf("read usage of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 || name != "VmHWM" && name != "VmRSS" {
			continue
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return u, fmt.Errorf("read usage of process %d: %s: %w", pid, name, err)
		}
		if name == "VmHWM" {
			u.Peak = kib << 10
		} else {
			u.Resident = kib << 10
		}
	}
	return u, nil
}

// processorTime adds user and system time of a line of /proc/PID/stat. The name of the program, in parentheses, may
// hold blanks.
func processorTime(stat string) (time.Duration, error) {
	after := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	const user, system = 11, 12 // fields 14 and 15 of the whole line
	if len(after) <= system {
		return 0, fmt.Errorf("stat has %d fields", len(after))
	}
	var sum int64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(after[i], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * clockTick, nil
}
