package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdPatience = 3 * time.Minute
	mostStored   = 8 << 30 // 150,000 pods and what they were until a compaction are near etcd's default of 2 GiB
)

// startEtcd starts a store of one member that never syncs to disk, and returns its client URL once it answers.
func (r *run) startEtcd() (string, error) {
	// Port 0: the kernel chooses, and the listener tells. A single member never dials its own peer address.
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg := embed.NewConfig()
	cfg.Name = "plane"
	cfg.Dir = r.filePath("etcd")
	cfg.ListenClientUrls = []url.URL{anyPort}
	cfg.AdvertiseClientUrls = []url.URL{anyPort}
	cfg.ListenPeerUrls = []url.URL{anyPort}
	cfg.AdvertisePeerUrls = []url.URL{anyPort}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	cfg.QuotaBackendBytes = mostStored
	cfg.LogLevel = "error"
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return "", err
	case <-time.After(etcdPatience):
		return "", fmt.Errorf("not ready after %s", etcdPatience)
	}
	if len(etcd.Clients) == 0 {
		return "", errors.New("no client listener")
	}
	r.inBackground("etcd", func() error { return <-etcd.Err() })
	return "http://" + etcd.Clients[0].Addr().String(), nil
}
