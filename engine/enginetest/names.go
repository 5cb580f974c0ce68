package enginetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/dnstest"
)

// Names returns a new name server. From its next start, the instance uses this server in place of
// the system's name server. Names needs root and Linux, and returns nil without them.
func (i *Instance) Names(t testing.TB) *dnstest.Server {
	t.Helper()
	address := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
	names, err := dnstest.Start(t, address+":53")
	if err != nil {
		t.Log("no name server for one process: ", err)
		return nil
	}
	conf := filepath.Join(Dir(t), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+address+"\noptions timeout:5 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := resolving(conf, "true").Run(); err != nil {
		t.Log("no name server for one process: ", err)
		return nil
	}
	i.resolv = conf
	return names
}
