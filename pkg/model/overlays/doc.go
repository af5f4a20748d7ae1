// Package overlays corrects what instance types cost and hold, as NodeOverlays say.
//
// It knows which overlay wins where several set the same thing, and which ones contradict each other. It refuses to
// know what is planned with the corrected types. Types are values: those given are never changed.
package overlays
