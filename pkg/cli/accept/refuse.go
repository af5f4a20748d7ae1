package accept

import (
	"fmt"
	"slices"
	"strings"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// Facts holds what is looked at before a run.
type Facts struct {
	Functions   []doctor.Function
	Stack       string // name
	StackStatus string // such as UPDATE_COMPLETE, empty: there is no such stack
	Leader      string // who holds Karpenter's leader lease
	Classes     []Class
	Pods        []Pod
	Existing    []string // what carries the mark of an earlier run in this cluster, or has a name of ours
}

// Class is an EC2NodeClass of the cluster.
type Class struct {
	Name  string         // of the object
	Ready bool           // its condition Ready is True
	Spec  map[string]any // its spec as the API server has it; nil for none
}

// Pod holds what decides whether a pod could go onto the run's nodes.
type Pod struct {
	Name        string // with its namespace
	OfNode      bool   // of a DaemonSet or of a node itself: it goes onto every node that it tolerates
	Ended       bool
	Tolerations []cluster.Toleration
	Selector    map[string]string
}

// ChooseClass is the class that the run's own one is like: the one named, else the first by name that is ready.
func ChooseClass(all []Class, name string) (Class, error) {
	slices.SortFunc(all, func(a, b Class) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range all {
		if c.Ready && (name == "" || c.Name == name) && c.Name != Name {
			return c, nil
		}
	}
	if name != "" {
		return Class{}, fmt.Errorf("there is no EC2NodeClass %s that is ready; joiner doctor says what keeps one from it", name)
	}
	return Class{}, fmt.Errorf("no EC2NodeClass is ready: make the one that your nodes will have, and see joiner doctor")
}

// Refusals are the reasons not to begin a run.
func Refusals(f Facts, r Run) []string {
	var out []string
	missing, modes := 0, map[string]bool{}
	for _, fn := range f.Functions {
		switch {
		case !fn.Found:
			missing++
			continue
		case fn.State != "Active":
			out = append(out, fmt.Sprintf("function %s is %s: is it being deployed?", fn.Name, fn.State))
		}
		if fn.Mode != "" {
			modes[fn.Mode] = true
		}
	}
	switch {
	case missing > 0 && missing == len(f.Functions):
		out = append(out, "Joiner is not deployed for cluster "+r.Cluster+" in this region and account")
	case modes["observe"]:
		out = append(out, "Joiner is deployed with mode observe: it would launch nothing; deploy it with mode act")
	}
	switch {
	case f.StackStatus == "":
		out = append(out, "there is no stack "+f.Stack+": name the one that Joiner is deployed with by --stack")
	case !strings.HasSuffix(f.StackStatus, "_COMPLETE"):
		out = append(out, fmt.Sprintf("stack %s is %s: wait for the deployment, or mend it, first", f.Stack, f.StackStatus))
	}
	if f.Leader != "" {
		out = append(out, f.Leader+" holds Karpenter's leader lease, so that Joiner only observes: scale Karpenter to 0 first")
	}
	for _, what := range sortedTexts(f.Existing) {
		out = append(out, what+" is there already: joiner accept --cluster "+r.Cluster+" --clean removes what an earlier run left")
	}
	return append(out, strayRefusals(f.Pods, r)...)
}

// strayRefusals name the pods of others that could go onto the run's nodes.
func strayRefusals(all []Pod, r Run) []string {
	var names []string
	for _, p := range all {
		if p.couldGoTo(r) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	names = sortedTexts(names)
	return []string{fmt.Sprintf("pods tolerate every taint and could go onto the nodes of the run: %s; give them a nodeSelector, or tolerations with keys, for the time of the run",
		lists.Name(names, ", "))}
}

// couldGoTo reports whether the scheduler could place the pod on a node of the run. Affinity is not looked at: a pod
// that only its affinity keeps away is refused, too.
func (p Pod) couldGoTo(r Run) bool {
	taint := cluster.Taint{Key: taintKey, Value: r.ID, Effect: "NoSchedule"}
	if p.OfNode || p.Ended || len(cluster.Untolerated([]cluster.Taint{taint}, p.Tolerations)) > 0 {
		return false
	}
	for key, value := range p.Selector {
		domain, _, qualified := strings.Cut(key, "/")
		known := qualified && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws"},
			func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
		if !known || key == karpv1.LabelNodePool && value != Name {
			return false // nodes of the run have no such label
		}
	}
	return true
}
