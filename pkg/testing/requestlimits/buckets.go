package requestlimits

import (
	"path"
	"slices"
	"time"
)

// Bucket holds tokens. It begins full, and fills again by so many a second.
type Bucket struct {
	burst, perSecond float64
	tokens           float64
	at               time.Time
}

// NewBucket is a full bucket of at least one token.
func NewBucket(now time.Time, burst, perSecond float64) *Bucket {
	burst = max(burst, 1)
	return &Bucket{burst: burst, perSecond: perSecond, tokens: burst, at: now}
}

// Spend takes n tokens if the bucket has so many, or is full.
func (b *Bucket) Spend(now time.Time, n float64) bool {
	b.tokens = min(b.burst, b.tokens+now.Sub(b.at).Seconds()*b.perSecond)
	b.at = now
	if b.tokens < min(n, b.burst) {
		return false
	}
	b.tokens -= n
	return true
}

// Account holds what an account has left of its buckets.
type Account struct {
	limits  []Limit
	buckets map[string]*Bucket
}

// NewAccount is an account whose buckets are full. Without limits it refuses nothing.
func NewAccount(limits []Limit) *Account {
	return &Account{limits: slices.Clone(limits), buckets: map[string]*Bucket{}}
}

// Take takes what a call needs, and reports false when a bucket has not so much. Every action has a bucket of requests
// of its own, and one for each parameter whose values are counted: counts says how many values the call has, by
// parameter. Of a call that is refused some buckets may keep the tokens.
func (a *Account) Take(now time.Time, service, action string, counts map[string]int) bool {
	drawn := map[string]bool{}
	for _, l := range a.limits {
		if fits, err := path.Match(l.Action, action); l.Service != service || err != nil || !fits || drawn[l.Each] {
			continue
		}
		drawn[l.Each] = true
		n, key := 1.0, service+":"+action+" "+l.Each
		if l.Each != "" {
			n = float64(counts[l.Each])
		}
		if a.buckets[key] == nil {
			a.buckets[key] = NewBucket(now, l.Burst, l.PerSecond)
		}
		if !a.buckets[key].Spend(now, n) {
			return false
		}
	}
	return true
}
