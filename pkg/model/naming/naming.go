// Package naming knows what the AWS resources of one cluster are called where somebody has to find them by name: the
// stack makes them, functions invoke each other by them, and the command line looks for them. A name that AWS would
// refuse as too long has the cluster's part cut and a hash of the whole in its place. Start with Names.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// What AWS takes, in characters.
const (
	longestFunction = 64
	longestRole     = 64
	longestStack    = 128
	longestGroup    = 64  // of schedules
	longestTitle    = 100 // a topic's display name
)

const (
	hashLength = 8
	// longestSuffix is reserved behind the cluster in the names of functions, so that all functions of a cluster have
	// the same beginning.
	longestSuffix = len("-reservationinterruption")
)

// Names makes the names of one cluster's resources.
type Names struct {
	Prefix  string // put before every name; usually empty
	Cluster string
}

// Function is the name of the Lambda function with this short name, and of its schedule. It has at most 64 characters.
func (n Names) Function(short string) string {
	return n.FunctionPrefix() + short
}

// FunctionPrefix returns the prefix of the names of all functions of the cluster.
func (n Names) FunctionPrefix() string {
	return n.withCluster("joiner-", longestFunction-longestSuffix) + "-"
}

// NodeRole is the name of the role of Linux nodes and of its instance profile, in at most 64 characters.
func (n Names) NodeRole() string { return n.withCluster("KarpenterNodeRole-", longestRole) }

// WindowsNodeRole is the same for Windows nodes.
func (n Names) WindowsNodeRole() string {
	const suffix = "-windows"
	return n.withCluster("KarpenterNodeRole-", longestRole-len(suffix)) + suffix
}

// Stack is the name of the CloudFormation stack: letters, digits and hyphens, at most 128.
func (n Names) Stack() string {
	return strings.ReplaceAll(n.withCluster("joiner-", longestStack), "_", "-")
}

// ScheduleGroup is the name of the group of the cluster's schedules, in at most 64 characters.
func (n Names) ScheduleGroup() string { return n.withCluster("joiner-", longestGroup) }

// Title names the cluster where a person reads it, in at most 100 characters.
func (n Names) Title() string { return Names{Cluster: n.Cluster}.withCluster("Joiner ", longestTitle) }

// Dashboard is the name of the dashboard. CloudWatch takes more characters than a cluster's name can have.
func (n Names) Dashboard() string { return n.Prefix + "joiner-" + n.Cluster }

// Alarm is the name of an alarm. CloudWatch takes more characters than a cluster's name can have.
func (n Names) Alarm(id string) string { return n.Prefix + "joiner-" + n.Cluster + "-" + id }

// withCluster is the prefix, the kind and the cluster, the last cut where the whole would be longer than the limit.
func (n Names) withCluster(kind string, limit int) string {
	before := n.Prefix + kind
	return before + shorten(n.Cluster, limit-len(before))
}

// shorten returns names up to the limit as they are. Of longer ones it returns the beginning with a hash of the whole,
// so that equal names stay equal and others different.
func shorten(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:limit-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
