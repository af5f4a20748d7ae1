package provision

import (
	"context"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// waitForBatch waits until no new pod has come for a while, so that those of a burst are packed together. Pods that
// have waited for longer anyway are not kept waiting. While nodes go away nobody waits for pods, but where several go
// at once, as when EC2 takes back many, the others of them are waited for: their pods need fewer nodes together. So
// they are where the API server shows late that one goes, for then it shows the others later still. What has passed
// since the pods were read, as the lease and the claims were, counts as waiting for others.
func (c *Controller) waitForBatch(ctx context.Context, pods []cluster.Pod, read time.Time,
	claims []cluster.Claim) error {
	if c.BatchIdle <= 0 {
		return nil
	}
	going := cluster.AnyDeleted(claims)
	arrive := func() bool {
		if going {
			now := c.Now()
			return c.deleted.moreToCome(claims, earliestNews(now, c.BatchIdle), now.Add(-c.BatchMax))
		}
		return c.podsArriving(pods)
	}
	for waited := time.Duration(0); arrive() && waited+c.BatchIdle <= c.BatchMax; waited += c.BatchIdle {
		controllers.NoteStage(ctx, controllers.StageBatching)
		wait := c.BatchIdle
		if waited == 0 && !going {
			wait -= c.Now().Sub(read)
		}
		if err := controllers.WaitFor(ctx, max(0, wait)); err != nil {
			return err
		}
		var err error
		if going {
			claims, err = c.Read.ListClaims(ctx)
		} else {
			pods, err = c.Read.PendingPods(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// earliestNews returns the time since when what came within the idle time came, in whole seconds as objects say it.
func earliestNews(now time.Time, idle time.Duration) time.Time {
	return now.Add(-idle).Truncate(time.Second)
}

// deletedClaims are the UIDs of the claims that were deleted when they were looked at last.
type deletedClaims map[string]bool

// moreToCome looks at the claims, and reports whether others are likely to be deleted with those that were deleted
// since the look before: several were deleted after the time given, which is in whole seconds as claims say it, or one
// that was deleted before it, but after the oldest time given, is seen only now.
func (d *deletedClaims) moreToCome(claims []cluster.Claim, after, oldest time.Time) bool {
	before, news, late := *d, 0, false
	*d = deletedClaims{}
	for _, c := range claims {
		if c.Deleting.IsZero() {
			continue
		}
		(*d)[c.UID] = true
		switch {
		case before[c.UID] || c.Deleting.Before(oldest):
		case c.Deleting.Before(after):
			late = true
		default:
			news++
		}
	}
	return late || news > 1
}

// podsArriving reports whether a pod was created within BatchIdle and was not among the pods of the call before.
func (c *Controller) podsArriving(pods []cluster.Pod) bool {
	before := c.known
	c.known = make(map[string]bool, len(pods))
	young := earliestNews(c.Now(), c.BatchIdle)
	arriving := false
	for _, pod := range pods {
		c.known[pod.UID] = true
		arriving = arriving || !pod.Virtual && !before[pod.UID] && !pod.Created.Before(young)
	}
	return arriving
}
