// Package disruption decides which nodes go by choice: empty, drifted, or more expensive than they need be.
//
// Start with decidePlan in pass.go. State is the snapshot as a pass sees it, progress looks after commands under way,
// candidates says who may go, Evaluator and consolidation answer what a set of nodes would save, setSearch chooses
// sets.
//
// A what-if is the packer on a snapshot without the nodes. A command is proposed in one pass and begun in a later one
// if it still holds; it ends when its pods fit on ready nodes, or is rolled back. State is on NodeClaims (CommandMark)
// and in the Memory that a pass gets and returns. It refuses to know who applies a plan. Why sets and payback:
// pkg/designs/consolidation.md; why replacements come first: pkg/designs/replacement-first.md.
package disruption
