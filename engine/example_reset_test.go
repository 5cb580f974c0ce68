package engine_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
)

// A reset of a chat loses no message in the example client, and sends none to anybody who was not
// in the chat before.
func TestAResetLosesNothingInTheExampleClient(t *testing.T) {
	s := newChatStory(t)
	followInClient(s.alice, s.bob)
	s.alice.goTo("chats")
	s.alice.await("the form", `!document.querySelector("#beginner").hidden`)
	s.alice.page.TypeInto(t, "#beginner input", s.bob.handle)
	s.alice.page.Press(t, "Enter")
	s.alice.awaitMembers(s.alice, s.bob)
	s.bob.openNewChat(s.alice)
	for _, scene := range []struct {
		name string
		play func(*testing.T)
	}{
		{"messages that a closed browser had not read", s.unreadAtReset},
		{"messages that who begins the group had not read", s.unreadByBeginner},
		{"messages that wait", s.waitsAtReset},
		{"the answer to the beginning is lost", s.answerToResetIsLost},
		{"two members begin the group", s.bothBegin},
		{"a record from before conversations were noted", s.recordWithoutConversation},
		{"key packages are refused", s.packagesAreRefused},
		{"a group of strangers", s.groupOfStrangers},
	} {
		t.Run(scene.name, func(t *testing.T) { s.in(t); scene.play(t) })
	}
}

// askReset lets alice's program ask for a reset, as an admin does.
func (s *chatStory) askReset(t *testing.T) {
	t.Helper()
	var chat string
	s.alice.page.Run(t, `new URLSearchParams(location.hash.split("?")[1]).get("uri")`, &chat)
	if got := s.alice.owner.Ask(t, http.MethodPost, "/api/conversations/"+chat+"/reset", map[string]any{}); got.Status != http.StatusAccepted {
		t.Fatalf("the reset is answered %d %s", got.Status, got.Body)
	}
	s.alice.awaitReset()
}

// awaitReset waits until a window offers to begin the next group.
func (c tab) awaitReset() {
	c.t.Helper()
	c.await("that a new group may begin", `document.querySelector("#writer").hidden && !document.querySelector("#resetter").hidden`)
}

// awaitGroup waits until a window shows the next group of n devices.
func (c tab) awaitGroup(n int) {
	c.t.Helper()
	c.await("the next group", `document.querySelector("#writer")?.hidden === false && document.querySelector("#resetter").hidden`)
	c.awaitKeys(n)
}

// failFetches lets the requests of a page fail whose paths contain part. It begins when the path of
// a request ends with from, or at once, and ends when the path of one ends with until, or never.
func (c tab) failFetches(part, from, until string) {
	c.t.Helper()
	c.page.Run(c.t, fmt.Sprintf(`{
		const real = window.realFetch ??= window.fetch
		let isAway = !%[2]q
		window.fetch = async (path, options) => {
			if (%[3]q && path.endsWith(%[3]q)) window.fetch = real
			else if (isAway && path.includes(%[1]q)) throw new TypeError("the server is away")
			if (%[2]q && path.endsWith(%[2]q)) isAway = true
			return real(path, options)
		}
	}`, part, from, until), nil)
}

// unreadAtReset closes bob's page before it has read the log. The log then has a message of his
// own, and five of alice's, in the group before the reset.
func (s *chatStory) unreadAtReset(t *testing.T) {
	var chat string
	s.bob.page.Run(t, "location.href", &chat)
	s.bob.failFetches("/log?", "/messages", "")
	s.bob.sayInChat("Taken, and not read.")
	s.alice.awaitSaid("Taken, and not read.")
	s.bob.page.Run(t, `location.href = "about:blank"`, nil)
	said := []string{"Taken, and not read."}
	for n := range 5 {
		said = append(said, fmt.Sprintf("Before the reset, %d.", n))
		s.alice.sayInChat(said[n+1])
		s.alice.awaitSaid(said...)
	}
	s.askReset(t)
	s.alice.page.Click(t, "#resetter button")
	s.alice.awaitGroup(2)
	s.alice.sayInChat("After the reset.")
	said = append(said, "After the reset.")
	s.alice.awaitSaid(said...)
	s.bob.page.Run(t, "location.href = "+strconv.Quote(chat), nil)
	s.bob.awaitGroup(2)
	s.bob.awaitSaid(said...)
	s.bob.sayInChat("All is here.")
	s.alice.awaitSaid(append(said, "All is here.")...)
}

// unreadByBeginner lets alice begin the group before her page has read what bob wrote.
func (s *chatStory) unreadByBeginner(t *testing.T) {
	s.alice.failFetches("/log?", "", "/reset")
	s.bob.sayInChat("Unread by Alice.")
	s.bob.await("that it is sent", findPost("Unread by Alice.")+`?.querySelector(".state").textContent === ""`)
	s.askReset(t)
	s.alice.page.Click(t, "#resetter button")
	s.alice.awaitGroup(2)
	s.bob.awaitGroup(2)
	s.bob.sayInChat("Read by Alice.")
	s.alice.awaitSaid("Unread by Alice.", "Read by Alice.")
}

// waitsAtReset lets a message of each wait while the chat is reset. Each goes to the other one in
// the next group.
func (s *chatStory) waitsAtReset(t *testing.T) {
	for c, until := range map[tab]string{s.alice: "/reset", s.bob: "/confirm"} {
		c.failFetches("/messages", "", until)
		c.sayInChat("Waits for the group of " + c.handle)
		c.await("that it waits", findPost("Waits for")+`?.querySelector(".state").textContent.startsWith("waits")`)
	}
	s.askReset(t)
	s.alice.page.Click(t, "#resetter button")
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitGroup(2)
	}
	s.bob.awaitSaid("Waits for the group of " + s.alice.handle)
	s.alice.awaitSaid("Waits for the group of " + s.bob.handle)
}

// answerToResetIsLost loses the answer to alice's page when it begins the group.
func (s *chatStory) answerToResetIsLost(t *testing.T) {
	s.askReset(t)
	s.alice.loseAnswer("/reset")
	s.alice.page.Click(t, "#resetter button")
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitGroup(2)
		c.awaitSaid("All is here.")
	}
	s.alice.sayInChat("The answer was lost.")
	s.bob.awaitSaid("All is here.", "The answer was lost.")
}

// bothBegin lets bob's page begin the group by a request that does not arrive, and alice's by one
// that does. Bob's page then gives its own group up, and joins alice's.
func (s *chatStory) bothBegin(t *testing.T) {
	s.askReset(t)
	s.bob.awaitReset()
	s.bob.failFetches("/reset", "", "")
	s.bob.page.Click(t, "#resetter button")
	s.bob.await("a failure", `document.querySelector("#problem").textContent.includes("the server is away")`)
	s.alice.page.Click(t, "#resetter button")
	s.alice.awaitGroup(2)
	s.alice.sayInChat("Alice was first.")
	s.bob.page.Run(t, `window.fetch = window.realFetch`, nil)
	s.bob.syncChats()
	s.bob.page.Run(t, `document.dispatchEvent(new Event("visibilitychange"))`, nil)
	s.bob.awaitGroup(2)
	s.bob.awaitSaid("The answer was lost.", "Alice was first.")
	s.bob.sayInChat("Bob was second.")
	s.alice.awaitSaid("Alice was first.", "Bob was second.")
}

// recordWithoutConversation takes out of the records of alice's page which conversation their
// groups are of, as in those of an older version of the client.
func (s *chatStory) recordWithoutConversation(t *testing.T) {
	s.alice.inStore(`list("groups").then((all) => store.write({ groups: all.map((group) => ({ ...group, conversation: undefined })) }))`, nil)
	s.alice.syncChats()
	s.askReset(t)
	s.alice.page.Click(t, "#resetter button")
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitGroup(2)
		c.awaitSaid("Bob was second.")
	}
}

// packagesAreRefused lets bob have as many key packages as a user may have, and his page miss its
// own. The server refuses more. The page reads on, and keeps no key of what is refused.
func (s *chatStory) packagesAreRefused(t *testing.T) {
	program, bob := s.devices.Make(t, s.bob.owner.ID), s.bob.owner
	var packages []any
	for range 100 - len(s.bob.keptPackages()) {
		var made struct{ Content string }
		program.Call(t, "keyPackage", map[string]any{}, &made)
		packages = append(packages, map[string]any{"deviceId": "program", "content": made.Content})
	}
	if got := bob.Ask(t, http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": packages[:50]}); got.Status != http.StatusCreated {
		t.Fatalf("50 key packages are answered %d %s", got.Status, got.Body)
	}
	for _, one := range packages[50:] { // until there are enough
		if bob.Ask(t, http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": []any{one}}).Status != http.StatusCreated {
			break
		}
	}
	before := len(s.bob.keptPackages())
	s.bob.page.Run(t, `{
		const real = window.fetch
		window.fetch = async (path, options) => (path.startsWith("/api/keypackages") && options.method === "GET" ? Response.json({ items: [] }) : real(path, options))
	}`, nil)
	s.alice.sayInChat("Read nevertheless.")
	s.bob.awaitSaid("Read nevertheless.")
	s.bob.await("the refusal in the words of the server", `document.querySelector("#problem").textContent.includes("100 key packages")`)
	if n := len(s.bob.keptPackages()); n != before {
		t.Errorf("the page keeps the keys of %d key packages, want %d", n, before)
	}
	s.bob.syncChats() // without a further refusal
	s.bob.page.Run(t, `window.fetch = window.realFetch`, nil)
}

// groupOfStrangers lets bob's server say that the chat goes on in a group with a stranger in it. A
// message that waits is not sent there until bob says so.
func (s *chatStory) groupOfStrangers(t *testing.T) {
	host, stranger := takeSeat(t, s.devices, s.alice.owner, "host"), s.devices.Make(t, "https://stranger.example/users/mallory")
	var shown struct{ Content string }
	stranger.Call(t, "keyPackage", map[string]any{}, &shown)
	var made struct{ Welcomes []string }
	host.device.Call(t, "create", map[string]any{"group": "urn:uuid:strangers"}, nil)
	host.device.Call(t, "commit", map[string]any{"group": "urn:uuid:strangers", "add": []string{s.bob.shownPackage(), shown.Content}}, &made)
	s.bob.failFetches("/messages", "", "")
	s.bob.sayInChat("For Alice alone.")
	s.bob.await("that it waits", findPost("For Alice alone.")+`?.querySelector(".state").textContent.startsWith("waits")`)
	s.bob.page.Run(t, fmt.Sprintf(`(async () => {
		const real = window.realFetch, chat = new URLSearchParams(location.hash.split("?")[1]).get("uri")
		const { groupId } = await (await import("/client/api.js")).read("/api/conversations/" + chat)
		let isIn = false
		window.sent = []
		window.fetch = async (path, options) => {
			if (path.startsWith("/api/welcomes?")) return Response.json({ items: [{ id: "1", conversationId: chat, welcome: %q }] })
			if (path.startsWith("/api/welcomes/")) {
				isIn = true
				return new Response(null, { status: 204 })
			}
			if (path.endsWith("/messages") && !isIn) throw new TypeError("the server is away")
			if (path.endsWith("/messages")) return Response.json({ seq: window.sent.push(options.body) + 1000 })
			const answer = await real(path, options)
			if (!path.startsWith("/api/conversations") || options.method !== "GET") return answer
			return new Response((await answer.text()).replaceAll(groupId, "urn:uuid:strangers"), answer)
		}
	})()`, made.Welcomes[0]), nil)
	s.bob.syncChats()
	s.bob.page.Run(t, `document.dispatchEvent(new Event("visibilitychange"))`, nil)
	s.bob.await("the stranger", `document.querySelector("#members").textContent.includes("mallory")`)
	s.bob.await("that it is not sent", findPost("For Alice alone.")+`.querySelector(".state").textContent.startsWith("not sent")`)
	s.bob.syncChats()
	var sent int
	if s.bob.page.Run(t, `window.sent.length`, &sent); sent > 0 {
		t.Error("the message goes to a stranger, and nobody has said so")
	}
	s.bob.page.Click(t, ".held:not([hidden]) .send")
	s.bob.await("that it is sent", `window.sent.length === 1 && `+findPost("For Alice alone.")+`.querySelector(".held").hidden`)
}
