// Package discovery reads what AWS says about a cluster, its region and its account, and keeps the catalog in S3.
//
// It knows the describe calls and translates their answers into values of catalog and api. It decides nothing about
// them. Every list has a limit.
package discovery
