package engine_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/browsertest"
)

// Two people use the demonstration's client, each in a browser. Each sees the actions of the other
// without reloading the page. With -update the test makes the pictures of the client's page.
func TestTwoPeopleUseTheExampleClient(t *testing.T) {
	browser := browsertest.Start(t)
	links := clientLinks(t)
	alice, bob := openClient(t, browser, links["alice"]), openClient(t, browser, links["bob"])
	alice.awaitPost("Hello from the other side.")
	t.Run("a stranger's message waits", func(t *testing.T) { strangerWrites(alice.in(t), bob.in(t)) })
	t.Run("a follow", func(t *testing.T) { followInClient(alice.in(t), bob.in(t)) })
	t.Run("a post, a like, a boost and a reply", func(t *testing.T) { postAndReact(alice.in(t), bob.in(t)) })
	t.Run("a thread", func(t *testing.T) { readThread(alice.in(t)) })
	t.Run("a refusal", func(t *testing.T) { refusedInClient(alice.in(t)) })
	t.Run("no encrypted chats without ts-mls", func(t *testing.T) { lackTSMLS(alice.in(t)) })
	t.Run("in every window and without a mouse", func(t *testing.T) { accessClient(alice.in(t)) })
	t.Run("signed out", func(t *testing.T) { signOutAndIn(bob.in(t), links["bob"]) })
	for _, tab := range []tab{alice, bob} {
		if all := tab.page.Complaints(); len(all) > 0 {
			t.Errorf("the page did what its policy forbids, or failed: %v", all)
		}
	}
}

// noClientBesideServe checks that serve does not serve the example client without --demo.
func noClientBesideServe(t *testing.T, i *enginetest.Instance) {
	for _, path := range []string{"/client/", "/client/client.js"} {
		if got := enginetest.Fetch(t, i.URL+path); got.Status != http.StatusNotFound {
			t.Errorf("%s is answered %d", path, got.Status)
		}
	}
}

// clientLinks starts the demonstration with further arguments. It returns the address of the
// client for each person.
func clientLinks(t *testing.T, args ...string) map[string]string {
	t.Helper()
	links := map[string]string{}
	for lines := startDemo(t, args...); len(links) < 2; {
		if !lines.Scan() {
			t.Fatalf("the demonstration told of no more clients than %v", links)
		}
		if words := strings.Fields(lines.Text()); len(words) == 2 && strings.Contains(words[1], "/client/#token=") {
			links[words[0]] = words[1]
		}
	}
	return links
}

// tab is the browser window in which one person uses the client.
type tab struct {
	t      *testing.T
	page   *browsertest.Page
	handle string
	owner  *enginetest.User // who uses it, with a token that does not depend on the session of the page
}

func openClient(t *testing.T, browser *browsertest.Browser, link string) tab {
	t.Helper()
	c := tab{t: t, page: browser.Open(t, link)}
	c.await("the handle of who is signed in", `document.querySelector("#me").textContent`)
	c.page.Run(t, `document.querySelector("#me").textContent`, &c.handle)
	var kept struct{ Address, Session, Elsewhere string }
	c.page.Run(t, `({ address: location.href, session: sessionStorage.getItem("lightweb session"), elsewhere: JSON.stringify(localStorage) + document.cookie })`, &kept)
	address, token, _ := strings.Cut(link, "#token=")
	if kept.Address != address || !strings.HasPrefix(kept.Session, "lws_") || kept.Elsewhere != "{}" {
		t.Errorf("the client keeps %+v, want no token and a session", kept)
	}
	c.owner = &enginetest.User{Home: &enginetest.Instance{URL: strings.TrimSuffix(address, "/client/")}, Token: token}
	var me struct{ URI string }
	c.owner.Ask(t, http.MethodGet, "/api/me", nil).Decode(t, &me)
	c.owner.ID = me.URI
	c.page.Press(t, "Tab")
	c.await("the focus on the link that skips", `document.activeElement.className === "skip"`)
	c.page.Press(t, "Enter")
	c.await("the focus behind the links", `document.activeElement.id === "view" && document.querySelector("#title").textContent === "Feed"`)
	return c
}

// in returns the client for use in a subtest.
func (c tab) in(t *testing.T) tab { c.t = t; return c }

func (c tab) await(event, script string) { c.t.Helper(); c.page.Await(c.t, event, script) }

// findPost returns a script that finds the item of the list that contains a text.
func findPost(text string) string {
	return `[...document.querySelectorAll("#list > li")].find((li) => li.innerText.includes(` + strconv.Quote(text) + `))`
}

func (c tab) awaitPost(text string) { c.t.Helper(); c.await("the post "+text, findPost(text)) }

// awaitIn waits until a part of a post contains a text.
func (c tab) awaitIn(text, part, says string) {
	c.t.Helper()
	c.await(part+" of "+text+" says "+says, findPost(text)+`?.querySelector(`+strconv.Quote(part)+`).textContent.includes(`+strconv.Quote(says)+`)`)
}

// clickIn clicks a part of a post as soon as the part is enabled.
func (c tab) clickIn(text, part string) {
	c.t.Helper()
	c.await(part+" of "+text+" to press", `((part) => part && !part.disabled && (part.click(), true))(`+findPost(text)+`?.querySelector(`+strconv.Quote(part)+`))`)
}

// goTo opens a view by its link.
func (c tab) goTo(view string) {
	c.t.Helper()
	c.page.Click(c.t, `nav a[href="#/`+view+`"]`)
	c.await("the view "+view, `document.querySelector("nav a[aria-current]")?.hash === "#/`+view+`"`)
}

// writeTo writes a message to one person with the form for new posts.
func (c tab) writeTo(handle, text string) {
	c.t.Helper()
	c.goTo("main")
	c.page.Run(c.t, `{ const s = document.querySelector("#composer select"); s.value = "direct"; s.dispatchEvent(new Event("change")) }`, nil)
	c.page.TypeInto(c.t, "#composer input", handle)
	c.page.TypeInto(c.t, "#composer textarea", text)
	c.page.Click(c.t, "#composer button")
}

func strangerWrites(alice, bob tab) {
	alice.writeTo(bob.handle, "Are you there?")
	bob.await("a mark at the requests", `document.querySelector("#unread-requests:not([hidden])")`)
	bob.goTo("requests")
	bob.awaitPost("Are you there?")
	bob.await("that the request is read", `document.querySelector("#unread-requests").hidden`)
	bob.clickIn("Are you there?", ".accept")
	bob.await("an empty list", `!document.querySelector("#nothing").hidden`)
	bob.goTo("main")
	bob.awaitIn("Are you there?", ".audience", "private")
}

func followInClient(alice, bob tab) {
	bob.goTo("people")
	bob.page.TypeInto(bob.t, "#finder input", alice.handle)
	bob.page.Press(bob.t, "Enter")
	bob.awaitPost(alice.handle)
	bob.clickIn(alice.handle, ".follow")
	bob.awaitIn(alice.handle, ".state", "You follow.")
	alice.await("a mark at the notifications", `document.querySelector("#unread-notifications:not([hidden])")`)
	alice.goTo("notifications")
	alice.awaitPost("follows you")
	alice.await("that the notifications are read", `document.querySelector("#unread-notifications").hidden`)
}

func postAndReact(alice, bob tab) {
	const text = "Good morning to everybody."
	alice.goTo("main")
	bob.goTo("main")
	alice.page.Run(alice.t, `document.querySelector("#composer select").value = "public"`, nil)
	alice.page.TypeInto(alice.t, "#composer textarea", text)
	alice.page.Run(alice.t, `document.querySelector("#composer button").focus()`, nil)
	alice.page.Press(alice.t, "Enter")
	alice.awaitPost(text)
	bob.awaitPost(text)
	bob.clickIn(text, ".like")
	alice.awaitIn(text, ".like span", "1")
	bob.await("that the like is bob's", findPost(text)+`.querySelector(".like").ariaPressed === "true"`)
	bob.clickIn(text, ".boost")
	alice.awaitIn(text, ".boost span", "1")
	bob.clickIn(text, ".like")
	alice.await("that the like is taken back", findPost(text)+`.querySelector(".like span").textContent === ""`)
	bob.clickIn(text, ".reply")
	bob.page.TypeInto(bob.t, ".answer:not([hidden]) textarea", "Good morning, Alice.")
	bob.page.Run(bob.t, `document.activeElement.form.requestSubmit()`, nil)
	alice.awaitIn(text, ".thread span", "1")
	alice.goTo("notifications")
	alice.awaitPost("Good morning, Alice.")
	alice.awaitPost("boosted your post")
}

func readThread(alice tab) {
	alice.clickIn("Good morning, Alice.", ".thread")
	alice.await("the thread, from its first post on", `document.querySelector("#list > li:first-child")?.innerText.includes("to everybody") && document.querySelectorAll("#list > li").length === 2`)
	alice.await("the focus on the title of the thread", `document.activeElement.textContent === "Thread"`)
}

func refusedInClient(alice tab) {
	alice.writeTo("nobody at all", "Hello?")
	alice.await("the words of the server", `document.querySelector("#problem").textContent.includes("actor")`)
	alice.await("the field that is wrong", `document.activeElement.name === "recipientUri" && document.activeElement.ariaInvalid === "true"`)
	alice.page.Run(alice.t, `{ const s = document.querySelector("#composer select"); s.value = "public"; s.dispatchEvent(new Event("change")); s.form.reset() }`, nil)
}

// lackTSMLS checks that the page says so when it is served without ts-mls.
func lackTSMLS(alice tab) {
	alice.goTo("chats")
	alice.await("a sentence about ts-mls", `document.querySelector("#lack:not([hidden])")?.innerText.includes("--ts-mls") && document.querySelector("#beginner").hidden`)
}

func accessClient(alice tab) {
	t := alice.t
	alice.page.Run(t, `document.querySelector("#problem").textContent = ""; document.activeElement.blur(); scrollTo(0, 0)`, nil)
	for _, view := range []string{"people", "chats", "requests", "notifications", "main"} {
		alice.goTo(view)
		if roles := alice.page.Nameless(t); len(roles) > 0 {
			t.Errorf("in the view %s a screen reader has no name for %v", view, roles)
		}
	}
	alice.awaitPost("to everybody")
	alice.await("the messages to go", `!document.querySelector("#status").textContent`)
	for name, w := range map[string]struct {
		width  int
		scheme string
	}{"light": {800, "light"}, "dark": {320, "dark"}} {
		alice.page.Resize(t, w.width, 900, w.scheme)
		var width int
		if alice.page.Run(t, "document.documentElement.scrollWidth", &width); width > w.width {
			t.Errorf("in a window of %d pixels the page has %d", w.width, width)
		}
		keepPicture(t, name, alice.page.Screenshot(t))
	}
}

func keepPicture(t *testing.T, name string, picture []byte) {
	t.Helper()
	if len(picture) > 200_000 {
		t.Errorf("the picture %s has %d bytes", name, len(picture))
	}
	if *update {
		if err := os.WriteFile(filepath.Join("../docs/examples/client", name+".png"), picture, 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
	}
}

func signOutAndIn(bob tab, link string) {
	var session string
	bob.page.Run(bob.t, `sessionStorage.getItem("lightweb session")`, &session)
	bob.page.Click(bob.t, "#logout")
	bob.await("the form to sign in, alone", `document.querySelector("#login:not([hidden])") && document.querySelector("#home[hidden]") && !sessionStorage.length && !document.querySelector("#list").children.length`)
	origin, _, _ := strings.Cut(link, "/client/")
	if got := (&enginetest.User{Home: &enginetest.Instance{URL: origin}, Token: session}).Ask(bob.t, http.MethodGet, "/api/me", nil); got.Status != http.StatusUnauthorized {
		bob.t.Errorf("the session that was ended is answered %d", got.Status)
	}
	bob.page.TypeInto(bob.t, "#password-login [name=username]", "bob")
	bob.page.TypeInto(bob.t, "#password-login [name=password]", "a guess of mine")
	bob.page.Press(bob.t, "Enter")
	bob.await("the words of the server about a password", `document.querySelector("#problem").textContent.includes("password")`)
	bob.page.TypeInto(bob.t, "#login input", "lw_bob_wrong")
	bob.page.Press(bob.t, "Enter")
	bob.await("the words of the server", `document.querySelector("#problem").textContent.includes("token")`)
	_, token, _ := strings.Cut(link, "#token=")
	bob.page.Run(bob.t, `document.querySelector("#login").reset()`, nil)
	bob.page.TypeInto(bob.t, "#login input", token)
	bob.page.Press(bob.t, "Enter")
	bob.awaitPost("to everybody")
}
