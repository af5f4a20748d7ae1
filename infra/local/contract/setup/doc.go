// Package setup tests the setup function where it matters: the deployed binary, asked as CloudFormation asks, against a
// real API server.
package setup
