package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// measureWaiting lets pods wait that fit on no node there is, and ticks once, as the schedule would at some time.
// Everything else is what functions do when they are called.
func (m *measured) measureWaiting(ctx context.Context, pods int, cold bool) error {
	what := waitingCase(pods, cold)
	if err := m.waitIdle(ctx); err != nil {
		return err
	}
	// as the schedule does every minute, so that a checkpoint is as old as it is then
	if err := m.tickUntilKnown(ctx, "lifecycle"); err != nil {
		return err
	}
	if cold {
		if err := m.endProcesses("provision", "lifecycle"); err != nil {
			return err
		}
	}
	known := m.Cloud.InstanceIDs()
	marked, err := m.watchMarkedPods(ctx)
	if err != nil {
		return err
	}
	m.forgetMeasured()
	began, busy := time.Now(), m.planeCPU()
	defer marked.stopWatching(began)
	burst := fmt.Sprintf("burst-%d", began.UnixNano())
	if err := forEach(ctx, pods, func(ctx context.Context, i int) error {
		return m.addPod(ctx, burstPod(burst, i))
	}); err != nil {
		return err
	}
	created := time.Since(began)
	last, left := time.Now(), pods
	for left > 0 && time.Since(began) < mayWait {
		if time.Since(last) > time.Minute { // the schedule, for what no call of the API server began
			last = time.Now()
			if _, err := m.Host.InvokeFunction(ctx, m.FunctionName("provision"), "Event", nil); err != nil {
				return err
			}
		}
		if err := waitFor(ctx, look); err != nil {
			return err
		}
		n, err := m.countUnbound(ctx)
		if err != nil {
			return err
		}
		left = n
	}
	bound, busy := time.Since(began), m.planeCPU()-busy
	if err := m.waitIdle(ctx); err != nil {
		return err
	}
	return m.closeCase(what, m.addFleets(known, began, row{Waiting: left, Bound: bound.Seconds(), PlaneCPU: busy,
		Created: created.Seconds(), Marked: marked.stopWatching(began)}))
}

// countUnbound counts the waiting pods that have no node.
func (m *measured) countUnbound(ctx context.Context) (n int, err error) {
	list, err := m.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: waitingPods,
		FieldSelector: "spec.nodeName="})
	if err != nil {
		return 0, fmt.Errorf("list waiting pods: %w", err)
	}
	return len(list.Items), nil
}

// addFleets adds when instances were launched that are not known.
func (m *measured) addFleets(known map[string]bool, began time.Time, r row) row {
	launched := m.Cloud.LaunchTimes(known)
	took := func(i int) float64 { return launched[i].Sub(began).Seconds() }
	if r.Launched = len(launched); r.Launched > 0 {
		r.FirstFleet, r.MostFleet, r.LastFleet = took(0), took((r.Launched*9-1)/10), took(r.Launched-1)
	}
	return r
}

// interruptNodes has EC2 take nodes back at once, while all others are full. Each notice begins in a new process, as
// where there was none for long.
func (m *measured) interruptNodes(ctx context.Context) error {
	var targets, others []string
	for _, i := range m.Cloud.DescribedInstances() {
		switch {
		case !m.filled[i.PrivateDNSName] || i.State != "running":
		case len(targets) < m.struck:
			targets = append(targets, i.ID)
		default:
			others = append(others, i.PrivateDNSName)
		}
	}
	if err := m.fillRoom(ctx, slices.DeleteFunc(others, func(n string) bool { return m.full[n] })); err != nil {
		return err
	}
	if err := m.endProcesses("spotinterruption"); err != nil {
		return err
	}
	known := m.Cloud.InstanceIDs()
	marked, err := m.watchDeletedClaims(ctx, targets)
	if err != nil {
		return err
	}
	m.forgetMeasured()
	began, busy := time.Now(), m.planeCPU()
	defer marked.stopWatching(began)
	for _, id := range targets {
		if err := m.Cloud.InterruptSpot(id, false); err != nil {
			return err
		}
	}
	err = m.waitUntil(ctx, "the interrupted instances are gone", func() (bool, error) {
		n := 0
		for _, i := range m.Cloud.DescribedInstances() {
			if slices.Contains(targets, i.ID) && i.State != "terminated" {
				n++
			}
		}
		return n == 0, nil
	})
	if err != nil {
		return err
	}
	gone, busy := time.Since(began), m.planeCPU()-busy
	if err := m.waitIdle(ctx); err != nil { // the pods may come and go for long on a control plane that is this busy
		m.say("after the interruption: " + err.Error())
	}
	return m.closeCase(fmt.Sprintf("%d %s", len(targets), noticed),
		m.addFleets(known, began, row{Bound: gone.Seconds(), PlaneCPU: busy, Marked: marked.stopWatching(began)}))
}

// ofRoom are millicores, about what is left of a filled node of eight processors, so that no pod of an app fits then.
const ofRoom = 750

// fillRoom puts a pod on each of the nodes that leaves no room for others, and returns when all know.
func (m *measured) fillRoom(ctx context.Context, nodes []string) error {
	full, now := newApp("", "room", len(nodes), ofRoom), metav1.Now()
	for _, n := range nodes {
		m.full[n] = true
	}
	if err := forEach(ctx, len(nodes), func(ctx context.Context, i int) error {
		return m.storePod(ctx, full.newPod(i, nodes[i], now))
	}); err != nil {
		return err
	}
	if err := m.awaitPods(ctx); err != nil {
		return err
	}
	for _, f := range []string{"lifecycle", "provision"} {
		if err := m.tickUntilKnown(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
