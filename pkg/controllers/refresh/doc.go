// Package refresh keeps the catalog and the status of EC2NodeClasses, NodePools, overlays and buffers up to date. Read
// refresh.go: Run and refreshClass.
//
// What a status says is for nodeclass to decide.
package refresh
