package enginetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Devices is a process with clients of MLS that are made with ts-mls. Its README lists the calls.
type Devices struct {
	mu      sync.Mutex // one call at a time
	calls   *json.Encoder
	answers *bufio.Reader
	log     *journal
	made    int
}

// Device is one of the clients.
type Device struct {
	all  *Devices
	name string
}

// tsmlsFolder is where the driver lies beside this file.
func tsmlsFolder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "tsmls")
}

// unpacked puts ts-mls where the driver finds it, once, and returns the folder.
var unpacked = sync.OnceValues(func() (dir string, err error) {
	var out, errs bytes.Buffer
	install := exec.Command(filepath.Join(tsmlsFolder(), "install"))
	install.Stdout, install.Stderr = &out, &errs
	if err := install.Run(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
})

// MLSPackages returns the folder whose node_modules has ts-mls. The test is skipped where no npm
// can install it.
func MLSPackages(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		Skip(t, "ts-mls needs npm: "+err.Error())
	}
	dir, err := unpacked()
	if err != nil {
		Skip(t, "ts-mls cannot be installed: "+err.Error())
	}
	return dir
}

// StartDevices starts a process that has no device yet. The test is skipped where there is no npm
// to install it with.
func StartDevices(t testing.TB) *Devices {
	t.Helper()
	c := exec.Command(Node(t), filepath.Join(tsmlsFolder(), "driver.mjs"), MLSPackages(t))
	log, err := openJournal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.close(t) })
	c.Stderr = log.file
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dieWithParent(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // at which it exits
		if err := c.Wait(); err != nil {
			t.Errorf("the process of the devices ended with %v\n%s", err, log)
		}
	})
	return &Devices{calls: json.NewEncoder(stdin), answers: bufio.NewReader(stdout), log: log}
}

// Make makes a device of an actor.
func (d *Devices) Make(t testing.TB, actor string) *Device {
	t.Helper()
	d.mu.Lock()
	d.made++
	device := &Device{all: d, name: fmt.Sprint(d.made)}
	d.mu.Unlock()
	device.Call(t, "make", map[string]any{"identity": actor}, nil)
	return device
}

// Call makes the device do something, and decodes what it answers into into, unless that is nil.
func (d *Device) Call(t testing.TB, call string, args map[string]any, into any) {
	t.Helper()
	if err := d.Try(t, call, args, into); err != nil {
		t.Fatalf("%s of device %s: %v", call, d.name, err)
	}
}

// Try is Call for what may fail. The error is the device's own.
func (d *Device) Try(t testing.TB, call string, args map[string]any, into any) error {
	t.Helper()
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	if err := d.all.calls.Encode(map[string]any{"device": d.name, "call": call, "args": args}); err != nil {
		t.Fatalf("tell a device: %v\n%s", err, d.all.log)
	}
	line, err := d.all.answers.ReadBytes('\n')
	if err != nil {
		t.Fatalf("hear a device: %v\n%s", err, d.all.log)
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err != nil {
		t.Fatalf("a device answers %q: %v", line, err)
	}
	if failed.Error != "" {
		return fmt.Errorf("%s", failed.Error)
	}
	if into != nil {
		if err := json.Unmarshal(line, into); err != nil {
			t.Fatalf("a device answers %q: %v", line, err)
		}
	}
	return nil
}
