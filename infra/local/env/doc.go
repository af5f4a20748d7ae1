// Package env is the whole local environment in one value: an emulated AWS account, a real control plane, the stack's
// functions behind a Lambda host, and fake kubelets for the instances that the functions launch.
//
// It knows how the parts meet and in which order they start and end. It refuses to know what is done with them: that is
// the story's and the tests' business.
package env
