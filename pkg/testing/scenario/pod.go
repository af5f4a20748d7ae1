package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/syntax"
)

// addPods reads "pods web n=2 cpu=900 mem=1024 ns=x priority=5 on=node-1 owner=DaemonSet ready deleting protected
// grace=60". Pods without "on" are pending; with n they are called web-1, web-2 and so on.
func (w *World) addPods(d directive) error {
	n := d.num("n", 1)
	for i := int64(1); i <= n; i++ {
		p, err := pod(d.turn(i), fmt.Sprintf("%s-%d", d.name(), i))
		if err != nil {
			return err
		}
		if p.NodeName = d.str("on"); p.NodeName != "" {
			p.Phase, p.Unscheduled = "Running", false
		}
		if d.has("deleting") {
			p.Deleting = w.Snapshot.Now.Add(30 * time.Second)
		}
		if d.has("protected") {
			p.DoNotDisrupt = "true"
		}
		p.Owner, p.Virtual, p.Ready = cluster.Owner(d.str("owner")), d.has("virtual"), d.has("ready")
		p.Nominated, p.GraceSec = d.str("nominated"), d.num("grace", 0)
		w.Snapshot.Pods = append(w.Snapshot.Pods, p)
	}
	return nil
}

// turn is the directive for the pod of that number: of the zones of a line "volumes zone a b c" each pod has the next.
func (d directive) turn(i int64) directive {
	d.lines = slices.Clone(d.lines)
	for j, l := range d.lines {
		if f := strings.Fields(l); len(f) > 2 && f[0] == "volumes" {
			d.lines[j] = fmt.Sprintf("volume %s In %s", f[1], f[2+int(i-1)%(len(f)-2)])
		}
	}
	return d
}

// pod reads the options and lines that pods and daemons share.
func pod(d directive, name string) (cluster.Pod, error) {
	p := cluster.Pod{
		Namespace: "default", Name: name, Phase: "Pending", Unscheduled: true, Priority: int32(d.num("priority", 0)),
		Labels: map[string]string{"app": d.name()}, Need: d.amounts(),
	}
	p.Need.Pods = 1
	if d.has("ns") {
		p.Namespace = d.str("ns")
	}
	if d.has("bound") {
		p.Unscheduled = false
	}
	for _, l := range d.lines {
		if err := podLine(&p, l); err != nil {
			return p, fmt.Errorf("pod %s: line %q: %w", name, l, err)
		}
	}
	return p, nil
}

func podLine(p *cluster.Pod, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return fmt.Errorf("nothing after %q", word)
	}
	k, v, _ := strings.Cut(rest, "=")
	switch word {
	case "label":
		p.Labels[k] = v
	case "select":
		if p.NodeSelector == nil {
			p.NodeSelector = map[string]string{}
		}
		p.NodeSelector[key(k)] = v
	case "tolerate":
		p.Tolerations = append(p.Tolerations, toleration(rest))
	case "spread":
		s, err := spread(f)
		p.Spread = append(p.Spread, s)
		return err
	case "attach":
		v := cluster.Volume{Driver: f[0], ID: p.Name} // a volume of its own, or the one that is named
		if len(f) > 1 {
			v.ID = f[1]
		}
		p.Volumes = append(p.Volumes, v)
		slices.SortFunc(p.Volumes, func(a, b cluster.Volume) int {
			return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.ID, b.ID))
		})
	case "requires":
		p.Requires = append(p.Requires, rest)
	case "unmodelled":
		p.Unmodelled = append(p.Unmodelled, rest)
	case "port":
		n, err := strconv.ParseInt(f[0], 10, 32)
		h := cluster.HostPort{Protocol: "TCP", IP: "0.0.0.0", Port: int32(n)}
		for i, word := range f[1:] {
			*[]*string{&h.Protocol, &h.IP}[min(i, 1)] = word
		}
		p.HostPorts = append(p.HostPorts, h)
		return err
	case "resource":
		n, err := strconv.ParseInt(f[len(f)-1], 10, 64)
		p.Need = p.Need.With(f[0], n)
		return err
	default:
		return podChoice(p, word, rest)
	}
	return nil
}

// podChoice reads the lines that hold requirements, terms of pod affinity, or a weight.
func podChoice(p *cluster.Pod, word, rest string) error {
	weight, after, _ := strings.Cut(rest, " ")
	n, _ := strconv.ParseInt(weight, 10, 32)
	switch word {
	case "affinity", "volume":
		rs, err := parseRequirements(rest)
		if word == "affinity" {
			p.NodeAffinity = append(p.NodeAffinity, rs)
		} else {
			p.VolumeZones = append(p.VolumeZones, rs)
		}
		return err
	case "prefer":
		rs, err := parseRequirements(after)
		p.NodePrefers = append(p.NodePrefers, cluster.WeightedRequirements{Weight: int32(n), Requirements: rs})
		return err
	case "near", "apart":
		x, err := term(strings.Fields(rest))
		if word == "near" {
			p.Affinity = append(p.Affinity, x)
		} else {
			p.AntiAffinity = append(p.AntiAffinity, x)
		}
		return err
	case "prefer-near", "prefer-apart":
		x, err := term(strings.Fields(after))
		if word == "prefer-near" {
			p.Prefers = append(p.Prefers, cluster.WeightedAffinityTerm{Weight: int32(n), Term: x})
		} else {
			p.Avoids = append(p.Avoids, cluster.WeightedAffinityTerm{Weight: int32(n), Term: x})
		}
		return err
	}
	return syntax.UnknownWord("word", word, "label", "select", "tolerate", "spread", "near", "apart", "attach",
		"unmodelled", "port", "resource",
		"affinity", "volume", "volumes", "prefer", "prefer-near", "prefer-apart")
}
