package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/browsertest"
)

// Two people chat encrypted with the demonstration's client. Each has browsers and a server of
// their own. With -update the test makes a picture of the client's page.
func TestTwoPeopleChatEncryptedInTheExampleClient(t *testing.T) {
	s := newChatStory(t)
	for _, scene := range []struct {
		name string
		play func(*testing.T)
	}{
		{"a chat begins", s.chatBegins},
		{"a picture", s.pictureOfChat},
		{"words that look like HTML", s.hostileWords},
		{"a name that looks like HTML", s.hostileName},
		{"the key packages run low", s.packagesRunLow},
		{"the pages are loaded again", s.pagesAreLoadedAgain},
		{"an answer is lost", s.answerIsLost},
		{"two tabs of one user", s.twoTabs},
		{"both add a browser of their own at once", s.bothAddBrowsers},
		{"another program takes part", s.anotherProgram},
		{"a member is removed, and let in again", s.memberIsRemoved},
		{"the conversation is reset", s.conversationIsReset},
		{"key packages are replaced", s.packagesAreReplaced},
	} {
		if !t.Run(scene.name, func(t *testing.T) { s.in(t); scene.play(t) }) {
			t.FailNow()
		}
	}
	for _, tab := range append(s.others, s.alice, s.bob) {
		if all := tab.page.Complaints(); len(all) > 0 {
			t.Errorf("the page did what its policy forbids, or failed: %v", all)
		}
	}
}

type chatStory struct {
	browser    *browsertest.Browser
	devices    *enginetest.Devices
	links      map[string]string
	alice, bob tab
	others     []tab // further windows of both people
}

// newChatStory opens a window for each of the two people.
func newChatStory(t *testing.T) *chatStory {
	t.Helper()
	browser, devices := browsertest.Start(t), enginetest.StartDevices(t)
	links := clientLinks(t, "--ts-mls", enginetest.MLSPackages(t))
	return &chatStory{browser: browser, devices: devices, links: links, alice: openClient(t, browser, links["alice"]), bob: openClient(t, browser, links["bob"])}
}

// in uses t as the test of all windows.
func (s *chatStory) in(t *testing.T) {
	s.alice.t, s.bob.t = t, t
	for i := range s.others {
		s.others[i].t = t
	}
}

// open adds another window of a person who is signed in.
func (s *chatStory) open(page *browsertest.Page, of tab) tab {
	of.page = page
	of.await("the handle of who is signed in", `document.querySelector("#me").textContent === `+strconv.Quote(of.handle))
	s.others = append(s.others, of)
	return of
}

func (s *chatStory) chatBegins(*testing.T) {
	alice, bob := s.alice, s.bob
	alice.goTo("chats")
	alice.await("the form", `!document.querySelector("#beginner").hidden`)
	alice.page.TypeInto(alice.t, "#beginner input", bob.handle)
	alice.page.Press(alice.t, "Enter")
	alice.await("a refusal in the words of the server", `document.querySelector("#problem").textContent.includes("the other server refused it: the key packages are for actors that the user follows")`)
	alice.await("no chat", `!document.querySelector("#list").children.length`)
	followInClient(alice, bob)
	alice.goTo("chats")
	alice.await("the form", `!document.querySelector("#beginner").hidden`)
	alice.page.Click(alice.t, "#beginner button")
	alice.await("a chat that is encrypted", `document.querySelector("#lock").textContent.includes("Encrypted from end to end")`)
	alice.awaitMembers(alice, bob)
	alice.sayInChat("Good evening, Bob.")
	bob.await("a mark at the chats", `document.querySelector("#unread-chats:not([hidden])")?.textContent === "1 new"`)
	bob.openNewChat(alice)
	bob.awaitSaid("Good evening, Bob.")
	bob.await("that the chat is read", `document.querySelector("#unread-chats").hidden`)
	bob.sayInChat("Good evening. Nobody else reads this?")
	alice.awaitSaid("Good evening. Nobody else reads this?")
	alice.sayInChat("Nobody. The servers carry it, but the keys are in our browsers.")
	bob.awaitSaid("Nobody. The servers carry it, but the keys are in our browsers.")
}

func (s *chatStory) pictureOfChat(t *testing.T) {
	alice := s.alice
	alice.page.Run(t, `document.querySelector("details").open = true; document.activeElement.blur(); scrollTo(0, 0)`, nil)
	if roles := alice.page.Nameless(t); len(roles) > 0 {
		t.Errorf("in a chat a screen reader has no name for %v", roles)
	}
	alice.page.Resize(t, 320, 900, "dark")
	var width int
	if alice.page.Run(t, "document.documentElement.scrollWidth", &width); width > 320 {
		t.Errorf("in a window of 320 pixels the page has %d", width)
	}
	alice.page.Resize(t, 800, 1030, "light")
	keepPicture(t, "chat", alice.page.Screenshot(t))
}

func (s *chatStory) hostileWords(t *testing.T) {
	const words = `<img src=x onerror="taken = 1"><b>not bold</b> & <script>taken = 1</script>`
	s.bob.sayInChat(words)
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitSaid(words)
		c.await("no element of it", `!document.querySelector("#list img, #list b, #list script") && !window.taken`)
	}
}

// hostileName makes the server answer with a name that looks like HTML. A real engine would turn
// such a name into text.
func (s *chatStory) hostileName(t *testing.T) {
	beside := s.open(s.alice.page.OpenBeside(t, s.links["alice"]), s.alice)
	beside.page.Run(t, `{
		const real = window.fetch
		window.fetch = async (path, options) => {
			const answer = await real(path, options)
			if (!path.startsWith("/api/actors")) return answer
			return Response.json({ ...await answer.json(), name: "<img src=x onerror='taken = 1'>" })
		}
	}`, nil)
	beside.openChat(s.bob)
	beside.await("the name as text", `document.querySelector("#members").textContent.includes("<img src=x") && !document.querySelector("#members img") && !window.taken`)
}

// pagesAreLoadedAgain closes bob's page while three messages arrive. When the page is loaded
// again, it reads them from the log.
func (s *chatStory) pagesAreLoadedAgain(*testing.T) {
	var chat string
	s.bob.page.Run(s.bob.t, "location.href", &chat)
	s.bob.page.Run(s.bob.t, `location.href = "about:blank"`, nil)
	s.alice.reload()
	for n := range 3 {
		text := fmt.Sprintf("You are away, %d.", n)
		s.alice.sayInChat(text)
		s.alice.awaitSaid(text)
	}
	s.bob.page.Run(s.bob.t, "location.href = "+strconv.Quote(chat), nil)
	s.bob.awaitSaid("Good evening, Bob.", "You are away, 0.", "You are away, 1.", "You are away, 2.")
	s.bob.sayInChat("I am back.")
	s.alice.awaitSaid("I am back.")
}

// loseAnswer drops the answer to the next request whose path ends with the parameter end.
func (c tab) loseAnswer(end string) {
	c.t.Helper()
	c.page.Run(c.t, `{
		const real = window.fetch
		window.fetch = async (path, options) => {
			const answer = await real(path, options)
			if (!path.endsWith(`+strconv.Quote(end)+`)) return answer
			window.fetch = real
			throw new TypeError("the answer is lost")
		}
	}`, nil)
}

// answerIsLost drops the answer to a message. The client sends the message again, and the page
// shows it once.
func (s *chatStory) answerIsLost(*testing.T) {
	s.alice.loseAnswer("/messages")
	s.alice.sayInChat("Sent twice.")
	s.bob.awaitSaid("Sent twice.")
	s.alice.sayInChat("Sent after it.")
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitSaid("Sent twice.", "Sent after it.")
		c.await("it once", `[...document.querySelectorAll(".words")].filter((p) => p.textContent === "Sent twice.").length === 1`)
	}
}

// Two tabs of one user share a device. twoTabs lets both send messages at once.
func (s *chatStory) twoTabs(t *testing.T) {
	beside := s.others[0]
	var texts []string
	for n := range 4 {
		for name, c := range map[string]tab{"one": s.alice, "the other": beside} {
			text := fmt.Sprintf("%d from %s tab.", n, name)
			c.page.Run(t, `void import("/client/chats.js").then((chats) => chats.device().say(new URLSearchParams(location.hash.split("?")[1]).get("uri"), `+strconv.Quote(text)+`))`, nil)
			texts = append(texts, text)
		}
	}
	for _, c := range []tab{s.bob, s.alice, beside} {
		for _, text := range texts {
			c.awaitSaid(text)
		}
		c.await("nothing that cannot be read", `!document.querySelector("#list").innerText.includes("cannot be read")`)
	}
}

// bothAddBrowsers lets both people add a browser in the same epoch. The engine refuses one commit,
// and the client makes it again.
func (s *chatStory) bothAddBrowsers(t *testing.T) {
	alice, bob := s.open(s.browser.Open(t, s.links["alice"]), s.alice), s.open(s.browser.Open(t, s.links["bob"]), s.bob)
	for _, c := range []tab{alice, bob} {
		c.goTo("chats")
		c.awaitIn("Chat of ", ".state", "This browser has no keys of it.")
		enginetest.Eventually(t, "key packages of two devices", func() bool { return len(c.devices()) == 2 })
	}
	s.bob.page.Run(t, `{
		const real = window.fetch
		window.refused = 0
		window.fetch = async (path, options) => {
			if (path.endsWith("/commits") && !window.refused) await new Promise((go) => { window.go = go })
			const answer = await real(path, options)
			if (answer.status === 409) window.refused++
			return answer
		}
	}`, nil)
	s.bob.addInChat(s.bob)
	s.bob.await("a commit on its way", "window.go")
	s.alice.addInChat(s.alice)
	s.alice.awaitKeys(3)
	s.bob.page.Run(t, "window.go()", nil)
	s.bob.await("one refusal", "window.refused === 1")
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitKeys(4)
	}
	alice.openChat(s.bob)
	bob.openChat(s.alice)
	bob.sayInChat("From another browser.")
	for _, c := range []tab{s.alice, s.bob, alice} {
		c.awaitSaid("From another browser.")
	}
	s.alice.sayInChat("To all four.")
	for _, c := range []tab{s.bob, alice, bob} {
		c.awaitSaid("To all four.")
	}
	alice.await("nothing from before it was let in", `!document.querySelector("#list").innerText.includes("evening")`)
}

// anotherProgram adds a device that runs another program. The program sends unusual messages.
func (s *chatStory) anotherProgram(t *testing.T) {
	seat := takeSeat(t, s.devices, s.bob.owner, "program")
	seat.publish(t)
	s.alice.addInChat(s.bob)
	s.alice.awaitKeys(5)
	seat.join(t)
	began := seat.read
	seat.say(t, `{"type":"Create","object":{"type":"Note","content":"<p>Some <b>HTML</b><script>taken = 1</script></p>"}}`)
	seat.say(t, `no JSON`)
	seat.say(t, `{"type":"Like","object":"urn:uuid:0"}`)
	seat.say(t, `{"type":"Note","attributedTo":"`+s.alice.owner.ID+`","content":"The end.","mediaType":"text/plain"}`)
	seat.say(t, `{"id":"mls://m/1","type":"Note","attachment":[{"name":"<b>notes.txt","encoding":"gzip","content":"H4sIAA=="}]}`)
	s.alice.awaitSaid("Some HTML", "This message cannot be read in this browser.", "The end.", "A file, which is not opened: <b>notes.txt")
	s.alice.await("it to be bob's, by the key", findPost("The end.")+`.querySelector(".name").textContent === `+strconv.Quote(s.bob.handle))
	s.alice.await("no element of it", `!document.querySelector("#list b, #list script") && !window.taken`)
	s.bob.sayInChat("Read by a program.")
	for _, c := range []tab{s.alice, s.others[2]} { // bob's other browser must read the message before bob is removed
		c.awaitSaid("Read by a program.")
	}
	seat.catchUp(t, began+6) // the program's own five messages, and bob's
	if heard := strings.Join(seat.heard, "\n"); !strings.Contains(heard, `"content":"Read by a program."`) {
		t.Errorf("the program has heard %s", heard)
	}
}

func (s *chatStory) memberIsRemoved(t *testing.T) {
	// the engine accepts the commit, although its answer is lost
	s.alice.loseAnswer("/commits")
	s.alice.page.Click(t, `#members [aria-label="Remove `+s.bob.handle+`"]`)
	for _, c := range []tab{s.bob, s.others[2]} {
		c.await("that the user is out", `document.querySelector("#lock").textContent.includes("not a member") && document.querySelector("#writer").hidden`)
	}
	s.others[2].goTo("chats")
	s.others[2].awaitIn(s.alice.handle, ".state", "You are not a member any more.")
	s.others[2].clickIn(s.alice.handle, ".chat")
	s.alice.awaitKeys(2)
	s.alice.sayInChat("Without Bob.")
	s.others[1].awaitSaid("Without Bob.")
	s.alice.addInChat(s.bob)
	for _, c := range []tab{s.bob, s.others[2]} {
		c.await("that the user is in again", `document.querySelector("#lock").textContent.includes("from end to end")`)
	}
	s.alice.sayInChat("Welcome back.")
	for _, c := range []tab{s.bob, s.others[2]} {
		c.awaitSaid("Read by a program.", "Welcome back.")
		c.await("nothing of what was said meanwhile", `!document.querySelector("#list").innerText.includes("Without Bob.")`)
	}
}

// devices returns the ids of the user's devices that have published key packages.
func (c tab) devices() []string {
	c.t.Helper()
	var all struct{ Items []struct{ DeviceID string } }
	c.owner.Ask(c.t, http.MethodGet, "/api/keypackages", nil).Decode(c.t, &all)
	var ids []string
	for _, k := range all.Items {
		if !slices.Contains(ids, k.DeviceID) {
			ids = append(ids, k.DeviceID)
		}
	}
	return ids
}

func (c tab) reload() {
	c.t.Helper()
	c.page.Run(c.t, "window.isOld = true; location.reload()", nil)
	c.await("the page anew", `!window.isOld && document.querySelector("#me")?.textContent`)
}

// openChat opens the chat with another person.
func (c tab) openChat(with tab) {
	c.t.Helper()
	c.goTo("chats")
	c.clickIn(with.handle, ".chat")
	c.await("the chat", `!document.querySelector("#writer").hidden`)
}

// openNewChat opens a chat of two that the other person has begun.
func (c tab) openNewChat(with tab) {
	c.t.Helper()
	c.goTo("chats")
	c.awaitIn(with.handle, ".state", "Encrypted. 2 members.")
	c.clickIn(with.handle, ".chat")
	c.awaitMembers(with, c)
}

func (c tab) sayInChat(text string) {
	c.t.Helper()
	c.await("that one may write", `!document.querySelector("#writer").hidden && !document.querySelector("#writer").ariaBusy`)
	c.page.TypeInto(c.t, "#writer textarea", text)
	c.page.Press(c.t, "Enter")
}

// addInChat adds the devices of a person that are not yet in the chat.
func (c tab) addInChat(whose tab) {
	c.t.Helper()
	c.page.Run(c.t, `document.querySelector("#chat details").open = true`, nil)
	c.page.TypeInto(c.t, "#adder input", whose.handle)
	c.page.Press(c.t, "Enter")
}

// awaitSaid waits until the page shows these messages in this order.
func (c tab) awaitSaid(texts ...string) {
	c.t.Helper()
	wanted, err := json.Marshal(texts)
	if err != nil {
		c.t.Fatal(err)
	}
	c.await("the messages "+string(wanted), `((said) => `+string(wanted)+`.every((text) => {
		const at = said.indexOf(text)
		said = said.slice(at + 1)
		return at >= 0
	}))([...document.querySelectorAll(".words")].map((p) => p.textContent))`)
}

func (c tab) awaitMembers(members ...tab) {
	c.t.Helper()
	for _, m := range members {
		c.await("the member "+m.handle, `document.querySelector("#members").textContent.includes(`+strconv.Quote(m.handle)+`)`)
	}
	c.await("no others", `document.querySelectorAll("#members li").length === `+strconv.Itoa(len(members)))
}

// awaitKeys waits until the chat has n devices.
func (c tab) awaitKeys(n int) {
	c.t.Helper()
	c.await(strconv.Itoa(n)+" devices", `[...document.querySelectorAll("#members .keys")].flatMap((code) => code.textContent.split(", ")).length === `+strconv.Itoa(n))
}
