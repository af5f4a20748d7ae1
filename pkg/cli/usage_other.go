//go:build !unix

package cli

func userSeconds() float64 { return 0 }

func maxRSSMiB() float64 { return 0 }
