package kube

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// The time of the last pod event is read from the claim, kept by whoever writes another part of its status, and taken
// away with null.
func TestLastPodEventTime(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 5, 0, time.UTC)
	c := Claims{&connection{now: func() time.Time { return at }}}
	n := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{LastPodEventTime: metav1.NewTime(at.In(time.FixedZone("x", 3600)))}}
	read := translate.Claim(n)
	if !read.LastPodEvent.Equal(at) || read.LastPodEvent.Location() != time.UTC {
		t.Errorf("read %v, want %v", read.LastPodEvent, at)
	}
	write := func(claim cluster.Claim) string {
		before := n.Status.DeepCopy()
		after := n.DeepCopy()
		c.fillStatus(after, claim)
		text, err := json.Marshal(statusPatch(before, &after.Status))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	read.NodeName = "node-1"
	if got := write(read); !strings.Contains(got, `"lastPodEventTime":"2026-01-01T12:00:05Z"`) {
		t.Errorf("the time is lost: %s", got)
	}
	read.LastPodEvent = time.Time{}
	if got := write(read); !strings.Contains(got, `"lastPodEventTime":null`) {
		t.Errorf("the time stays: %s", got)
	}
	if !translate.Claim(&karpv1.NodeClaim{}).LastPodEvent.IsZero() {
		t.Error("a claim without the time has one")
	}
}
