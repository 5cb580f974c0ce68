package browsertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"
)

type object = map[string]any

// Page is a window. OpenBeside opens other windows in the same context. The windows of one context
// share storage and locks. Windows of different contexts share nothing.
type Page struct {
	browser *Browser
	context string // its id; windows of one context share storage and locks
	session string
}

// Open opens an address in a new window with a context of its own, and waits until the page is
// loaded.
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	var made struct{ BrowserContextID string }
	decode(t, b.call(t, "", "Target.createBrowserContext", nil), &made)
	return b.openIn(t, made.BrowserContextID, url)
}

// OpenBeside opens an address in another window with the same context.
func (p *Page) OpenBeside(t testing.TB, url string) *Page {
	t.Helper()
	return p.browser.openIn(t, p.context, url)
}

func (b *Browser) openIn(t testing.TB, context, url string) *Page {
	t.Helper()
	var made struct{ TargetID, SessionID string }
	decode(t, b.call(t, "", "Target.createTarget", object{"url": "about:blank", "browserContextId": context, "newWindow": true}), &made)
	decode(t, b.call(t, "", "Target.attachToTarget", object{"targetId": made.TargetID, "flatten": true}), &made)
	p := &Page{b, context, made.SessionID}
	for _, method := range []string{"Runtime.enable", "Log.enable", "Page.enable", "Accessibility.enable"} {
		p.call(t, method, nil)
	}
	p.call(t, "Emulation.setFocusEmulationEnabled", object{"enabled": true}) // every window behaves as if it had the focus
	p.call(t, "Page.navigate", object{"url": url})
	p.Await(t, url+" is loaded", `location.href !== "about:blank" && document.readyState === "complete"`)
	return p
}

func (p *Page) call(t testing.TB, method string, params any) json.RawMessage {
	t.Helper()
	return p.browser.call(t, p.session, method, params)
}

// Complaints returns the exceptions of the page's scripts, and the actions that the page's
// security policy refused.
func (p *Page) Complaints() []string { return p.browser.complaints[p.session] }

// Run runs a script in the page and awaits the script's value. Unless the parameter value is nil,
// Run decodes the script's value into it.
func (p *Page) Run(t testing.TB, script string, value any) {
	t.Helper()
	var ran struct {
		Result    struct{ Value json.RawMessage }
		Exception *struct {
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	decode(t, p.call(t, "Runtime.evaluate", object{"expression": script, "awaitPromise": true, "returnByValue": true}), &ran)
	if ran.Exception != nil {
		t.Fatalf("run %s: %s", script, ran.Exception.Exception.Description)
	}
	if value != nil {
		decode(t, ran.Result.Value, value)
	}
}

// Await waits until the value of a script in the page is true.
func (p *Page) Await(t testing.TB, event, script string) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for is := false; ; {
		if p.Run(t, "Boolean("+script+")", &is); is {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			var shown string
			p.Run(t, "document.body.innerText", &shown)
			t.Fatalf("never came true: %s\nthe page shows\n%s\nand its scripts %v", event, shown, p.Complaints())
		}
	}
}

// find returns a script that finds the element with a selector.
func find(selector string) string { return "document.querySelector(" + strconv.Quote(selector) + ")" }

// Click clicks on an element.
func (p *Page) Click(t testing.TB, selector string) {
	t.Helper()
	p.Run(t, find(selector)+".click()", nil)
}

// TypeInto focuses an element and types text.
func (p *Page) TypeInto(t testing.TB, selector, text string) {
	t.Helper()
	p.Run(t, find(selector)+".focus()", nil)
	p.call(t, "Input.insertText", object{"text": text})
}

// keys are the key codes of the keys that tests press.
var keys = map[string]int{"Tab": 9, "Enter": 13}

// Press presses and releases a key.
func (p *Page) Press(t testing.TB, key string) {
	t.Helper()
	down := object{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keys[key]}
	if key == "Enter" {
		down["text"] = "\r"
	}
	p.call(t, "Input.dispatchKeyEvent", down)
	p.call(t, "Input.dispatchKeyEvent", object{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": keys[key]})
}

// Resize makes the window width by height pixels large, and sets its preferred colour scheme,
// light or dark.
func (p *Page) Resize(t testing.TB, width, height int, scheme string) {
	t.Helper()
	p.call(t, "Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	p.call(t, "Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}})
}

// Screenshot returns a picture of the window, as PNG.
func (p *Page) Screenshot(t testing.TB) []byte {
	t.Helper()
	var shot struct{ Data string }
	decode(t, p.call(t, "Page.captureScreenshot", object{"format": "png"}), &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Nameless returns the roles of those controls that have no name for a screen reader.
func (p *Page) Nameless(t testing.TB) (roles []string) {
	t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	decode(t, p.call(t, "Accessibility.getFullAXTree", nil), &tree)
	controls := map[any]bool{"button": true, "link": true, "textbox": true, "combobox": true, "navigation": true, "list": false}
	for _, n := range tree.Nodes {
		if name := n.Name.Value; !n.Ignored && controls[n.Role.Value] && (name == nil || name == "") {
			roles = append(roles, fmt.Sprint(n.Role.Value))
		}
	}
	return roles
}

func decode(t testing.TB, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("the browser answered %s: %v", data, err)
	}
}
