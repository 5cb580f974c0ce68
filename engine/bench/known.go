package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// epochReads is how many times measureKnown reads an epoch.
const epochReads = 1_000_000

// measureKnown measures the memory and the goroutines of conversations that are stored and of
// those among them that have just got a message, and the time to read the epoch of one of these.
// No request shows any of that, so the registry of conversations runs in this process, on the
// database of the user.
func (i *testbed) measureKnown(ctx context.Context, u account, l ConversationsLoad) (m Measurement, err error) {
	r := i.beside.NewConversations(i.beside.DB.As(pool.Owner), nil)
	defer func() { err = errors.Join(err, r.Close(context.WithoutCancel(ctx))) }()
	places, device := make([]conversation.Place, 0, l.Busy), mlstest.NewDevice(string(u.id), time.Now())
	send := func(ids []uuid.UUID) error {
		for _, id := range ids {
			at := conversation.Place{Host: u.name, ID: id}
			group := mlstest.NewGroupWith("urn:uuid:"+id.String(), device)
			if _, err := r.Send(ctx, at, conversation.Message{Caller: u.id, Content: group.Message()}); err != nil {
				return fmt.Errorf("send a message: %w", err)
			}
			places = append(places, at)
		}
		return nil
	}
	ids, err := i.measured.Host(ctx, u.name, u.id, 1)
	if err == nil {
		err = send(ids) // opens the database
	}
	if err != nil {
		return m, err
	}
	empty, _ := measureHeap()
	if ids, err = i.measured.Host(ctx, u.name, u.id, l.Known); err != nil {
		return m, err
	}
	ids, places = slices.Clone(ids[:l.Busy]), places[:0] // without the other ids, which would be in the figures
	quiet, before := measureHeap()
	c, err := i.timeWork(ctx, func(context.Context) error { return send(ids) })
	if err != nil {
		return m, err
	}
	live, after := measureHeap()
	perRead, err := timeEpochs(r, places)
	m = c.newMeasurement(fmt.Sprintf("%d conversations that are known, a message to %d of them", l.Known, l.Busy), l.Busy)
	m.Counts["messages"] = l.Busy
	m.Figures = []Figure{newFigure("memory of a known one", max(0, quiet-empty)/float64(l.Known), "B"), newFigure("memory of a live one without work", (live-quiet)/float64(l.Busy), "B"),
		newFigure("goroutines of all", float64(after-before), "goroutines"), newFigure("reading an epoch", perRead, "ns")}
	return m, err
}

// timeEpochs returns the nanoseconds that it takes to read the epoch of a live conversation.
func timeEpochs(r *conversation.Registry, places []conversation.Place) (float64, error) {
	began := time.Now()
	for n := range epochReads {
		if _, known := r.Epoch(places[n%len(places)]); !known {
			return 0, fault.New(fault.Internal, "a conversation that has just got a message is not known")
		}
	}
	return float64(time.Since(began).Nanoseconds()) / epochReads, nil
}

// measureHeap collects the garbage, and returns how many bytes are in use and how many goroutines
// run.
func measureHeap() (bytes float64, goroutines int) {
	runtime.GC()
	runtime.GC() // frees the content of pools, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), runtime.NumGoroutine()
}
