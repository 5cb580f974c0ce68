package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWorkThatIsOwedEndsSoonAfterItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		longer, cancel := Outlive(ctx, time.Second)
		defer cancel()
		began := time.Now()
		time.AfterFunc(time.Hour, end)
		<-longer.Done()
		if took := time.Since(began); took != time.Hour+time.Second {
			t.Errorf("it ended after %v, want a second after the hour", took)
		}
		if longer, cancel := Outlive(t.Context(), time.Second); longer.Err() == nil {
			cancel()
			if longer.Err() == nil {
				t.Error("it has not ended when it is cancelled")
			}
		}
	})
}
