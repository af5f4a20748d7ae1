package binpack

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// preferApart makes each pod of the app prefer a node that no other of them is on.
func preferApart(s cluster.Snapshot, app string) {
	mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", app)}}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Labels["app"] == app {
			p.Avoids = []cluster.WeightedAffinityTerm{{Weight: 100,
				Term: cluster.AffinityTerm{Key: podclass.LabelHost, Selector: mine}}}
		}
	}
}

// TestPodsThatPreferToBeApartGuideTheSearchByWhatThatCosts checks that pods which a solution puts on a node each are
// worth more to the search than to the bound, which holds for plans without their preference too.
func TestPodsThatPreferToBeApartGuideTheSearchByWhatThatCosts(t *testing.T) {
	s := services(t, 100)
	preferApart(s, "app-0000")
	w := newProblem(s, ResolveOfferings(s))
	a, st := placeMostPods(w)
	guide := st.pricing.guidePricesFor(a)
	for _, k := range w.classes.List {
		is, proved := guide.lowestPrice(k), st.pricing.worth.lowestPrice(k)
		apart := k.Pod.Labels["app"] == "app-0000"
		if apart && is < 1.5*proved {
			t.Errorf("pods that prefer to be apart are worth %f, want more than %f and a half", is, proved)
		}
		if !apart && is > 1.1*proved {
			t.Errorf("other pods are worth %f, want about %f", is, proved)
		}
	}
}

// TestPodsWithoutPreferencesGuideTheSearchByTheBound checks that nothing is priced twice for them.
func TestPodsWithoutPreferencesGuideTheSearchByTheBound(t *testing.T) {
	s := services(t, 100)
	w := newProblem(s, ResolveOfferings(s))
	a, st := placeMostPods(w)
	if st.pricing.guidePricesFor(a) != st.pricing.worth {
		t.Error("prices were found anew")
	}
}
