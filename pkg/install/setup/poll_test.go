package setup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What is done when the time is over is done, though the look before took all of the time and had not seen it.
func TestTheLastLookIsWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := &Setup{Poll: time.Second}, 0
		err := s.pollUntil(t.Context(), 2*time.Second, func(context.Context) (error, bool, error) {
			if looks++; looks == 1 {
				time.Sleep(3 * time.Second)
			}
			return errors.New("not yet"), looks > 1, nil
		})
		if err != nil || looks != 2 {
			t.Errorf("%v after %d looks", err, looks)
		}
	})
}
