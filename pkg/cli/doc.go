// Package cli is Joiner's command line for people: the commands, their flags, what they print and how they exit.
//
// It knows files, terminals and clusters that a kubeconfig names; every decision is made by the package that makes it
// in the functions too. Nothing is changed but where a command says so.
package cli
