// Package browsertest drives a Chromium without a window, over the pipe of its DevTools protocol.
package browsertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the longest wait for one answer of the browser.
const patience = time.Minute

// Find returns the path of a Chromium. Where Chromium is missing, the test is skipped. If
// LIGHTWEB_TEST_ALL is set, the test fails instead.
func Find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const why = "there is no Chromium on this machine: apt-get install chromium"
	if os.Getenv("LIGHTWEB_TEST_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// Browser is a browser that runs until the test ends.
type Browser struct {
	mu         sync.Mutex // allows one call at a time
	in, out    *os.File
	answers    *bufio.Reader
	last       int                 // number of the last call
	complaints map[string][]string // complaints about pages, by session
}

// message is a call, an answer or an event. On the pipe, each message ends with a NUL byte.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser with a profile of its own.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := Find(t)
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{in: in, out: out, answers: bufio.NewReader(out), complaints: map[string][]string{}}
	c := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	c.ExtraFiles = []*os.File{theirIn, theirOut} // file descriptors 3 and 4 of the browser
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.call(t, "", "Browser.close", nil)
		if err := c.Wait(); err != nil {
			t.Errorf("the browser ended with %v", err)
		}
		in.Close()
		out.Close()
	})
	theirIn.Close()
	theirOut.Close()
	return b
}

// call makes a call to the page with this session. If session is empty, the call goes to the
// browser. It returns the result.
func (b *Browser) call(t testing.TB, session, method string, params any) json.RawMessage {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	sent, err := json.Marshal(message{ID: b.last, Session: session, Method: method, Params: params})
	if err == nil {
		err = b.out.SetReadDeadline(time.Now().Add(patience))
	}
	if err == nil {
		_, err = b.in.Write(append(sent, 0))
	}
	for err == nil {
		var m message
		if m, err = b.readMessage(); err == nil && m.ID == b.last {
			if m.Error != nil {
				err = fmt.Errorf("refused: %s", m.Error.Message)
				break
			}
			return m.Result
		}
	}
	t.Fatalf("ask the browser for %s: %v", method, err)
	return nil
}

// readMessage reads a message, and stores it if it is a complaint about a page.
func (b *Browser) readMessage() (message, error) {
	text, err := b.answers.ReadString(0)
	if err != nil {
		return message{}, err
	}
	text = strings.TrimSuffix(text, "\x00")
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return message{}, err
	}
	isRefusal := m.Method == "Log.entryAdded" && strings.Contains(text, `"source":"security"`)
	if isRefusal || m.Method == "Runtime.exceptionThrown" {
		b.complaints[m.Session] = append(b.complaints[m.Session], text)
	}
	return m, nil
}
