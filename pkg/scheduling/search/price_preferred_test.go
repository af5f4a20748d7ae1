package search

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/testing/manypods"
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
	s := manypods.Services(t, 100)
	preferApart(s, "app-0000")
	p := packing.NewProblem(s, manypods.Sold(s))
	solution, st := placeMostPods(p)
	guide := st.pricing.GuidePricesFor(solution)
	for _, class := range p.Classes.List {
		is, proved := guide.LowestPrice(class), st.pricing.Worth.LowestPrice(class)
		apart := class.Pod.Labels["app"] == "app-0000"
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
	s := manypods.Services(t, 100)
	p := packing.NewProblem(s, manypods.Sold(s))
	solution, st := placeMostPods(p)
	if st.pricing.GuidePricesFor(solution) != st.pricing.Worth {
		t.Error("prices were found anew")
	}
}
