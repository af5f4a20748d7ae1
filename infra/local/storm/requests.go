package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// requests is how many requests the API server took so far from the functions: they alone come under the flow schema for
// everybody else, since the control plane's parts, kubelets and administrators have schemas of their own.
func (s *storm) requests(ctx context.Context) (float64, error) {
	text, err := s.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read metrics of the API server: %w", err)
	}
	line := regexp.MustCompile(`^apiserver_flowcontrol_dispatched_requests_total\{.*flow_schema="global-default".*\} (\S+)$`)
	sum := 0.0
	for l := range strings.Lines(string(text)) {
		if m := line.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return 0, fmt.Errorf("read metrics of the API server: %w", err)
			}
			sum += n
		}
	}
	return sum, nil
}
