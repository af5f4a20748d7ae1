package awsemulator

import (
	"encoding/json"
	"net/http"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// serveLocal is the side door for people with curl: what Go callers do by methods, as JSON over HTTP. It is not
// signed, so the account must listen on loopback only.
//
//	GET    /_local/calls?service=ec2&action=CreateFleet   the request log
//	DELETE /_local/calls                                  forget it
//	GET    /_local/counts                                 calls by action
//	GET    /_local/instances                              all instances
//	POST   /_local/instances/{id}/{interrupt|rebalance|terminate|stop|start}
//	GET, POST, DELETE /_local/faults                      see Fault
//	POST, DELETE      /_local/capacity                    see Capacity
//	POST   /_local/prices   {"instanceType","zone","usd"} set a spot price
//	POST   /_local/expire?role=NAME                       expire the credentials of a role, or all
func (c *Cloud) serveLocal(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // a client that went away is its own loss
	}
	mux.HandleFunc("GET /_local/calls", func(w http.ResponseWriter, r *http.Request) {
		out := []Call{}
		for _, call := range c.LoggedCalls() {
			if matchesPattern(r.FormValue("service"), call.Service) &&
				matchesPattern(r.FormValue("action"), call.Action) {
				out = append(out, call)
			}
		}
		answer(w, out)
	})
	mux.HandleFunc("DELETE /_local/calls", func(http.ResponseWriter, *http.Request) { c.ForgetCalls() })
	mux.HandleFunc("GET /_local/counts", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.CallCounts()) })
	mux.HandleFunc("GET /_local/instances", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, append([]Instance{}, c.instances.DescribedInstances()...))
	})
	mux.HandleFunc("POST /_local/instances/{id}/{action}", c.serveInstanceAction)
	mux.HandleFunc("GET /_local/faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.ActiveFaults()) })
	mux.HandleFunc("POST /_local/faults", handlePost(func(f Fault) error {
		switch f.Kind {
		case Throttle, FailBefore, FailAfter, LoseReply, Slow, Swallow, Curtail:
			c.AddFault(f)
			return nil
		}
		return wire.Fail(400, "BadRequest", "kind must be throttle, fail-before, fail-after, lose-reply, slow, swallow or curtail")
	}))
	mux.HandleFunc("DELETE /_local/faults", func(http.ResponseWriter, *http.Request) { c.ClearFaults() })
	mux.HandleFunc("POST /_local/capacity", handlePost(func(l Capacity) error {
		c.market.LimitCapacity(l)
		return nil
	}))
	mux.HandleFunc("DELETE /_local/capacity", func(http.ResponseWriter, *http.Request) { c.market.ClearCapacity() })
	mux.HandleFunc("POST /_local/prices", handlePost(func(p struct {
		InstanceType, Zone string
		USD                float64
	},
	) error {
		c.market.SetSpotPrice(p.InstanceType, p.Zone, p.USD)
		return nil
	}))
	mux.HandleFunc("POST /_local/expire", func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]int{"expired": c.sts.ExpireCredentials(r.FormValue("role"))})
	})
	mux.ServeHTTP(w, r)
}

// handlePost reads a JSON body and answers 400 where it is no good.
func handlePost[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		d.DisallowUnknownFields()
		err := d.Decode(&in)
		if err == nil {
			err = do(in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// serveInstanceAction does something to one instance.
func (c *Cloud) serveInstanceAction(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	actions := map[string]func() error{
		"interrupt": func() error { return c.instances.InterruptSpot(id, r.FormValue("rebalance") == "true") },
		"rebalance": func() error { return c.instances.RecommendRebalance(id) },
		"terminate": func() error { return c.instances.KillInstance(id) },
		"stop":      func() error { return c.power.StopInstance(id) },
		"start":     func() error { return c.power.StartStopped(id) },
	}
	act := actions[strings.ToLower(r.PathValue("action"))]
	if act == nil {
		http.NotFound(w, r)
		return
	}
	if err := act(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
