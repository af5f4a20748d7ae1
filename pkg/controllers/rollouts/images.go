package rollouts

import (
	"context"
	"slices"
	"sync"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/rollout"
)

// askEvery is the time between two questions to EC2 for the images of a last good revision.
const askEvery = 10 * time.Minute

// ImageReader reads AMIs. It may be repeated.
type ImageReader interface {
	// FindImages returns those of the AMIs that can be launched: one that was deregistered or disabled is left out.
	FindImages(ctx context.Context, ids []string) ([]string, error)
}

// imageMemory holds EC2's last answers about images, by NodeRollout.
type imageMemory struct {
	mu   sync.Mutex
	last map[string]imageAnswer
}

type imageAnswer struct {
	asked []string
	at    time.Time
	gone  []string
}

// recall returns what was said of these images, unless that is too long ago.
func (m *imageMemory) recall(rollout string, ids []string, now time.Time) (gone []string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.last[rollout]
	return a.gone, now.Sub(a.at) < askEvery && slices.Equal(a.asked, ids)
}

func (m *imageMemory) keep(rollout string, a imageAnswer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[string]imageAnswer{}
	}
	m.last[rollout] = a
}

// readGoneImages fills in which images of the last good revision are gone. Those that its class has now are there, as
// refresh found; EC2 is asked for others only, so that a NodeRollout whose class is trusted costs no call. What cannot
// be read counts as there.
func (c *Controller) readGoneImages(ctx context.Context, s cluster.Snapshot, r *cluster.Rollout) {
	ids := rollout.DoubtfulImages(s, *r)
	if len(ids) == 0 || c.Images == nil {
		return
	}
	gone, known := c.Told.images.recall(r.Name, ids, s.Now)
	if !known {
		found, err := c.Images.FindImages(ctx, ids)
		if err != nil {
			c.Log.Warn("nobody knows whether the images of NodeRollout "+r.Name+" are there", "error", err)
			return
		}
		gone = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(found, id) })
		c.Told.images.keep(r.Name, imageAnswer{asked: ids, at: s.Now, gone: gone})
	}
	r.GoneImages = gone
}
