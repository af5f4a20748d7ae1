package client

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Names of the files in a plane's directory.
const (
	StateFile      = "plane.json"       // there exactly while the plane is ready
	KubeconfigFile = "admin.kubeconfig" // of a member of system:masters
	LogFile        = "plane.log"        // of all components
	LockFile       = "lock"             // locked by the plane as long as its process lives
	AuditFile      = "audit.log"        // one audit event a line, if they were asked for
)

// State is what a ready plane says of itself in StateFile.
type State struct {
	Server string `json:"server"` // URL of the API server
	Etcd   string `json:"etcd"`   // URL of its store, for who fills a cluster faster than by requests
	// PEM of the authority that signed the server's certificate (base64 in the file)
	CAData       []byte  `json:"caData"`
	PID          int     `json:"pid"`          // of joiner-plane
	Port         int     `json:"port"`         // of the API server, on 127.0.0.1
	Dir          string  `json:"dir"`          // absolute
	Kubeconfig   string  `json:"kubeconfig"`   // path of KubeconfigFile, absolute
	ServiceCIDR  string  `json:"serviceCIDR"`  // the range of service addresses
	ClusterDNS   string  `json:"clusterDNS"`   // address of Service kube-system/kube-dns
	ReadySeconds float64 `json:"readySeconds"` // from the process' start to readiness
}

// WriteFile stores the state in the directory; a reader sees all of it or none.
func (s State) WriteFile(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode plane state: %w", err)
	}
	file := filepath.Join(dir, StateFile)
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write plane state: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write plane state: %w", err)
	}
	return nil
}

// readState reads what WriteFile wrote; the error is os.ErrNotExist while there is none.
func readState(dir string) (State, error) {
	var s State
	data, err := os.ReadFile(filepath.Join(dir, StateFile))
	if err != nil {
		return s, fmt.Errorf("read plane state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("decode plane state: %w", err)
	}
	return s, nil
}
