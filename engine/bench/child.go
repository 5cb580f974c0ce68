package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
)

// engineSetup has the settings of the engine under test. The settings are sent to the engine's
// process as JSON.
type engineSetup struct {
	Version, DataDir           string
	PublicURL, Listen, Admin   string
	DatabaseURL, DatabaseName  string
	NoRedis                    bool          // use an address on which no Redis answers
	Connections                int           // database.max_connections; 0: the engine's default
	DeliveryTimeout, DrainTime time.Duration // 0: the engine's defaults
}

// config returns the settings of the engine: the defaults, with the changes that loopback and
// measuring need.
func (s engineSetup) config() instance.Config {
	c := instance.DefaultConfig(s.DataDir)
	c.Version, c.PublicURL, c.Listen, c.AdminListen = s.Version, s.PublicURL, s.Listen, s.Admin
	c.Database.URL, c.Database.Name = instance.Secret(s.DatabaseURL), s.DatabaseName
	if s.NoRedis {
		c.Redis.URL = "redis://127.0.0.1:1"
	}
	if s.Connections > 0 {
		c.Database.MaxConnections = s.Connections
	}
	if s.DeliveryTimeout > 0 {
		c.Delivery.Timeout = s.DeliveryTimeout
	}
	if s.DrainTime > 0 {
		c.DrainTimeout = s.DrainTime
	}
	c.Federation.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Federation.AllowHTTP = true
	l := &c.Limits // no rate is limited, because all peers are one host
	l.InboxAddressRate, l.InboxHostRate, l.InboxActorRate, l.KeyFetchRate = instance.Rate{}, instance.Rate{}, instance.Rate{}, instance.Rate{}
	return c
}

// Words that the measuring process and the engine's process exchange after the setup, one on
// each line.
const (
	wordProfile = "profile " // begin profiling; followed by the name of the file for the profile
	wordEnough  = "enough"   // end profiling
	wordReady   = "ready"    // answered once the engine serves
	wordDone    = "done"     // the answer to each other word
)

// Serve runs the engine under test. It reads its setup from the first line of the parameter in,
// and writes to the parameter out when it serves. Then it obeys the other lines of the input, and
// ends when the input ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) (err error) {
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	var s engineSetup
	if err == nil {
		err = json.Unmarshal(first, &s)
	}
	if err != nil {
		return fault.New(fault.Usage, "this is the engine that 'lightweb bench' starts: it is told on standard input what to do")
	}
	e, err := engine.Open(ctx, s.config(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	obeyed := make(chan error, 1)
	err = e.Serve(ctx, func(engine.Serving) {
		go func() {
			obeyed <- obeyLines(lines, out)
			stop()
		}()
	})
	select {
	case lost := <-obeyed:
		return errors.Join(err, lost)
	default:
		return err
	}
}

// obeyLines obeys the words that it reads, until the input ends.
func obeyLines(lines *bufio.Reader, out io.Writer) error {
	var profile *os.File
	answer := wordReady
	for {
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return fmt.Errorf("answer the benchmark: %w", err)
		}
		line, err := lines.ReadString('\n')
		if err != nil { // the measuring process has ended
			return nil
		}
		switch name, asked := strings.CutPrefix(strings.TrimSpace(line), wordProfile); {
		case asked:
			if profile, err = os.Create(name); err == nil {
				err = pprof.StartCPUProfile(profile)
			}
		case profile != nil:
			pprof.StopCPUProfile()
			err = profile.Close()
		}
		answer = wordDone
		if err != nil {
			answer = err.Error()
		}
	}
}
