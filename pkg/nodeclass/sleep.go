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
	"joiner.sh/pkg/model/lists"
)

// sleepOf returns when something sleeps whose annotations say that.
func sleepOf(said annotations.NodePool) (at string, long time.Duration) {
	if said.HibernationSchedule == annotations.Never {
		return "", 0
	}
	return said.HibernationSchedule, said.HibernationDuration
}

// SleepWith has a pool that does not say itself when it sleeps do so with the whole stack, whose annotations are those
// of its namespace. While they cannot be understood the pool only reports, as with its own.
func SleepWith(stack, own map[string]string, d cluster.Disruption) cluster.Disruption {
	said, problems := annotations.ReadPool(stack)
	if saysWhenToSleep(annotations.ReadPool(own)) || !saysWhenToSleep(said, problems) {
		return d
	}
	problems = lists.Where(problems, isAboutSleep)
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

// saysWhenToSleep reports whether the annotations say when to sleep, though nobody may understand them.
func saysWhenToSleep(said annotations.NodePool, problems []annotations.Problem) bool {
	return said.HibernationSchedule != "" || said.HibernationDuration > 0 ||
		slices.ContainsFunc(problems, isAboutSleep)
}

func isAboutSleep(p annotations.Problem) bool { return p.Key == api.AnnotationHibernationDuration }
