package nodeclass

import (
	"errors"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// sleepOf returns when something sleeps whose annotations say that.
func sleepOf(said annotations.Pool) (at string, long time.Duration) {
	if said.HibernationSchedule == annotations.Never {
		return "", 0
	}
	return said.HibernationSchedule, said.HibernationDuration
}

// SleepWith has a pool that does not say itself when it sleeps do so with the whole stack, whose annotations are those
// of its namespace. While they cannot be understood the pool only reports, as with its own.
func SleepWith(stack, own map[string]string, d cluster.Disruption) cluster.Disruption {
	if own[api.AnnotationHibernationSchedule] != "" || own[api.AnnotationHibernationDuration] != "" ||
		stack[api.AnnotationHibernationSchedule] == "" && stack[api.AnnotationHibernationDuration] == "" {
		return d
	}
	said, problems := annotations.ReadPool(stack)
	problems = slices.DeleteFunc(problems, func(p annotations.Problem) bool {
		return p.Key != api.AnnotationHibernationDuration
	})
	s := cluster.Disruption{SleepZone: said.TimeZone}
	s.SleepAt, s.SleepFor = sleepOf(said)
	if err := errors.Join(asError(problems), budgets.ValidateBudgets(s)); err != nil {
		d.ReportOnly, d.Message = true, strings.TrimPrefix(
			d.Message+"; namespace joiner-system: "+strings.ReplaceAll(err.Error(), "\n", "; "), "; ")
		return d
	}
	d.SleepAt, d.SleepFor, d.SleepZone = s.SleepAt, s.SleepFor, s.SleepZone
	return d
}
