// Package settings knows every knob of Joiner once: its name, the environment variable that carries it to the
// functions, its default, its unit and one sentence. The stack, the functions and the README take them from here. It
// refuses to know where a value comes from: the caller hands in a lookup, and only pkg/app reads the environment.
package settings
