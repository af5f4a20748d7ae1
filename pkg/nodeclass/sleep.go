package nodeclass

import (
	"errors"
	"fmt"
	api "joiner.sh/pkg/api/v1"
	"strings"
	"time"

	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// Annotations on a NodePool, and on the namespace joiner-system for all NodePools that do not say themselves when they
// sleep. The time zone is that of api.AnnotationTimeZone.
const neverSleeps = "never"

// sleepFrom reads when something sleeps.
func sleepFrom(annotations map[string]string, out *cluster.Disruption) (err error) {
	if out.SleepAt = annotations[api.AnnotationHibernationSchedule]; out.SleepAt == neverSleeps {
		out.SleepAt = ""
		return nil
	}
	text := annotations[api.AnnotationHibernationDuration]
	if text == "" {
		return nil
	}
	if out.SleepFor, err = time.ParseDuration(text); err != nil {
		return fmt.Errorf("annotation %s: %q is no duration; write it like 12h", api.AnnotationHibernationDuration,
			text)
	}
	return nil
}

// SleepWith has a pool that does not say itself when it sleeps do so with the whole stack, whose annotations are those
// of its namespace. While they cannot be understood the pool only reports, as with its own.
func SleepWith(stack, own map[string]string, d cluster.Disruption) cluster.Disruption {
	if own[api.AnnotationHibernationSchedule] != "" || own[api.AnnotationHibernationDuration] != "" ||
		stack[api.AnnotationHibernationSchedule] == "" && stack[api.AnnotationHibernationDuration] == "" {
		return d
	}
	s := cluster.Disruption{SleepZone: stack[api.AnnotationTimeZone]}
	if err := errors.Join(sleepFrom(stack, &s), budgets.ValidateBudgets(s)); err != nil {
		d.ReportOnly, d.Message = true, strings.TrimPrefix(
			d.Message+"; namespace joiner-system: "+strings.ReplaceAll(err.Error(), "\n", "; "), "; ")
		return d
	}
	d.SleepAt, d.SleepFor, d.SleepZone = s.SleepAt, s.SleepFor, s.SleepZone
	return d
}
