package prices

import (
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/podclass"
)

// DivideByClass counts the pods of each class, those that spread in equal parts however few they are, and how many of
// them one domain, and so one node, holds at most in any plan.
func (p *ShadowPrices) DivideByClass(kinds []*podclass.Class) {
	for i := range p.Problem.Classes {
		p.Problem.Classes[i].Count = 0
	}
	for i, k := range kinds {
		x, n := p.Members[i], len(k.Pods)
		if x.Key == "" {
			p.Problem.Classes[x.class].Count += float64(n)
		}
		for _, c := range x.tied {
			p.Problem.Classes[c].Count += float64(n) / float64(len(x.tied))
		}
	}
	p.LimitToPods(p.Problem.Classes, kinds)
}

// LimitToPods lets a node hold no more pods of a class than one domain holds in any plan.
func (p *ShadowPrices) LimitToPods(classes []lowerbound.PriceClass, kinds []*podclass.Class) {
	most := make([]float64, len(p.Classes))
	for i, k := range kinds {
		x, n := p.Members[i], len(k.Pods)
		if x.Key == "" {
			most[x.class] += float64(n)
		}
		for _, c := range x.tied { // the emptiest domain has at most the skew less than the fullest
			most[c] += float64(min(n, (n+(len(x.tied)-1)*x.Skew)/len(x.tied)))
		}
	}
	for i := range classes {
		if c := &classes[i]; c.Most == 0 || most[i] < c.Most {
			c.Most = max(1, most[i])
		}
	}
}
