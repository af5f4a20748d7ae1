// Package compact writes plain values in few bytes, and reads them again: each different string stands once, numbers
// take as many bytes as they need, and nothing is named. Start with Writer.
//
// It refuses to know what the values mean. Whoever reads must know the type that was written: see Fingerprint. Limits:
// no interfaces, functions, channels or unexported fields but those of times and requirements; maps have strings as
// keys. What is read from damaged bytes is an error or other values, never a panic, and takes memory in proportion to
// the bytes.
package compact
