// Package annotations reads what people write into annotations, and says what of it nobody understands.
//
// Start with ReadPool. ListPool has every annotation for NodePools, with its values and what it does; the page of
// settings is made of it. A value that no annotation knows is a Problem, never a default in silence. It knows words and
// numbers, and refuses to know schedules, time zones and what follows from an annotation.
package annotations
