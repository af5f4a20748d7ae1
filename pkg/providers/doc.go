// Package providers holds the only packages that know an SDK: one for each outside system.
//
// kube speaks to the API server, fleet to EC2 launches, discovery to EC2, SSM and pricing, store to Joiner's own
// objects, archive to S3, invoke to Lambda. Each implements ports that pkg/controllers declares. Providers do not know
// each other, the controllers or any deciding package. Most of their tests need a server and stand in
// infra/local/contract.
package providers
