package enginetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"testing"
)

// Devices is a process that runs MLS clients made with ts-mls. README.md in the folder tsmls lists
// the calls.
type Devices struct {
	mu      sync.Mutex // allows one call at a time
	calls   *json.Encoder
	answers *bufio.Reader
	log     *journal
	made    int
}

// Device is one of the MLS clients in a Devices process.
type Device struct {
	all  *Devices
	name string
}

// StartDevices starts a process without any device. The test is skipped where npm cannot install
// Node.js or ts-mls.
func StartDevices(t testing.TB) *Devices {
	t.Helper()
	c := exec.Command(Node(t), besideThis("tsmls", "driver.mjs"), MLSPackages(t))
	stdin, stdout, log := startNode(t, c, "the process of the devices")
	return &Devices{calls: json.NewEncoder(stdin), answers: bufio.NewReader(stdout), log: log}
}

// Make makes a device of suite 1 that belongs to an actor.
func (d *Devices) Make(t testing.TB, actor string) *Device {
	t.Helper()
	return d.make(t, map[string]any{"identity": actor})
}

// MakeP256 makes a device of suite 2. RFC 9420 does not permit a compressed signature key, but
// ts-mls makes one by default.
func (d *Devices) MakeP256(t testing.TB, actor string, isCompressed bool) *Device {
	t.Helper()
	return d.make(t, map[string]any{"identity": actor, "suite": 2, "isCompressed": isCompressed})
}

func (d *Devices) make(t testing.TB, args map[string]any) *Device {
	t.Helper()
	d.mu.Lock()
	d.made++
	device := &Device{all: d, name: fmt.Sprint(d.made)}
	d.mu.Unlock()
	device.Call(t, "make", args, nil)
	return device
}

// Call makes the device do something. Unless the parameter into is nil, Call decodes the device's
// answer into it. An error fails the test.
func (d *Device) Call(t testing.TB, call string, args map[string]any, into any) {
	t.Helper()
	if err := d.Try(t, call, args, into); err != nil {
		t.Fatalf("%s of device %s: %v", call, d.name, err)
	}
}

// Try does the same as Call, for a call that may fail. It returns the error that the device
// reports.
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
