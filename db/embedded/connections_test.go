package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThereIsRoomForTheConnectionsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wanted int
		conf   string
	}{{0, "300"}, {297, "300"}, {400, "403"}} {
		dir := testDir(t, "data")
		c, err := Open(t.Context(), Config{Dir: dir, Connections: tt.wanted})
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, c)
		conf, err := os.ReadFile(filepath.Join(dir, "pg", "lightweb.conf"))
		if err != nil || !strings.Contains(string(conf), "\nmax_connections = "+tt.conf+"\n") {
			t.Errorf("for %d connections (%v):\n%s\nwant %s", tt.wanted, err, conf, tt.conf)
		}
	}
}
