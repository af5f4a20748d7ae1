package scenario

import "joiner.sh/pkg/testing/syntax"

// Words are the directives of a world. A harness that has more of its own checks with
// syntax.NewGrammar(scenario.Words(), ...).
func Words() syntax.Grammar {
	return syntax.NewGrammar(nil,
		"type NAME cpu=# mem=# pods=# milliusd=# spot=# zones= arch= reserved= without=",
		"types",
		"pool NAME weight=# class= static replicas=# deleting not-ready= unseen overhead=#",
		"pods NAME n=# cpu=# mem=# ns= priority=# on= owner= ready deleting protected virtual nominated= grace=# bound",
		"daemon NAME cpu=# mem=# ns= priority=#",
		"node NAME type= zone= capacity= pool= ready=# initialized=# reservation= unmanaged nominated= starting unregistered deleting interrupted end=# grace=# disrupted moving",
		"claim NAME pool= types= zones= cpu=# mem=# pods=# nominated= type= zone= age= lost= deleting",
		"namespace NAME",
		"budget NAME blocking allowed=# always",
		"overlay NAME weight=# price= change= invalid=",
		"commitment NAME type= zone= flexible room=#",
		"elsewhere TYPE zone= n=#",
		"unavailable TYPE zone= capacity=",
		"class NAME broken= kubelet=",
		"rules ignore-preferences best-effort registration-minutes=# max-claims=# max-nodes=# max-nodes-per-minute=# max-milliusd=# spot-pool-share=#",
	)
}
