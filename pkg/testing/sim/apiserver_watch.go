package sim

import (
	"slices"
	"time"
)

// objectKind is a kind of object that is watched.
type objectKind string

const (
	aPod   objectKind = "pod"
	aClaim objectKind = "claim"
	aNode  objectKind = "node"
)

// objectChange is news for those who watch.
type objectChange struct {
	kind objectKind
	by   *invocation // nil for somebody else
	at   int
}

// watchWaiter is an invocation that waits for news.
type watchWaiter struct {
	r   *portRequest
	lag time.Duration
}

// notifyChange remembers news and wakes those who have not seen it, after the lag of their watch.
func (s *apiServer) notifyChange(k objectKind, by *invocation) {
	s.version++
	s.news = append(s.news, objectChange{k, by, s.version})
	if len(s.news) > 400 {
		s.news = append([]objectChange(nil), s.news[200:]...)
	}
	s.answerWatchers()
}

// answerWatchers answers the watchers for whom there is news.
func (s *apiServer) answerWatchers() {
	s.watchers = slices.DeleteFunc(s.watchers, func(x watchWaiter) bool {
		if s.isAbandoned(x.r) {
			return true
		}
		if !s.hasUnseenChange(x.r) {
			return false
		}
		s.runAfter(x.lag, func() { s.network.answerRequest(x.r, portAnswer{value: struct{}{}}) })
		return true
	})
}

func (s *apiServer) hasUnseenChange(r *portRequest) bool {
	for i := len(s.news) - 1; i >= 0; i-- {
		if c := s.news[i]; c.by != r.inv && c.at > r.seen[c.kind] {
			return true
		}
	}
	return false
}

// addWatcher has the request answered once there is news for it, so much later.
func (s *apiServer) addWatcher(r *portRequest, lag time.Duration) {
	s.watchers = append(s.watchers, watchWaiter{r, lag})
	s.answerWatchers()
}
