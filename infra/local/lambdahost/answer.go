package lambdahost

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// SetAttributes gives the functions what the function behind a custom resource answered: where their environment refers
// to its attributes, new processes get them. It fails as the deployment would: when Lambda would refuse an environment.
func (h *Host) SetAttributes(logicalID string, attributes map[string]string) error {
	var problems []error
	for _, f := range h.functions {
		problems = append(problems, f.setAttributes(logicalID, attributes))
	}
	return errors.Join(problems...)
}

// FunctionEnvironment is the environment of a function as it is deployed now. Nil: there is no such function.
func (h *Host) FunctionEnvironment(name string) map[string]string {
	f, err := h.findFunction(name)
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.resolved)
}

// FunctionMemory is what a function may have as it is deployed now, in MiB; 0 if there is no such function.
func (h *Host) FunctionMemory(name string) int64 {
	f, err := h.findFunction(name)
	if err != nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemoryMB
}

// setAttributes changes the environment of the function. Processes that have the old one take no more invocations, as
// those of an older version.
func (f *function) setAttributes(logicalID string, attributes map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answers == nil {
		f.answers = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		f.answers[assembly.AnswerTo(logicalID, name)] = attributes[name]
	}
	next := maps.Clone(f.Environment)
	for name, value := range next {
		for answer, text := range f.answers {
			value = strings.ReplaceAll(value, answer, text)
		}
		next[name] = value
	}
	if size, ok := f.answers[f.MemoryLike]; ok {
		memory, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return fmt.Errorf("function %s: read the answer for its memory: %w", f.Name, err)
		}
		f.MemoryMB = memory
	}
	if maps.Equal(next, f.resolved) {
		return nil
	}
	f.resolved = next
	f.version++
	return checkEnvironment(f.Name, next)
}

// pendingVariable names a variable that waits for an answer; empty for none.
func pendingVariable(environment map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if strings.Contains(environment[name], "{{answer:") {
			return name
		}
	}
	return ""
}

// errPending says that a function cannot run yet.
func errPending(function, variable string) error {
	return fmt.Errorf("function %s: variable %s is an attribute of a custom resource that nobody answered for", function,
		variable)
}
