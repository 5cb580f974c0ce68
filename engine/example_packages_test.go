package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// packagesRunLow claims key packages of bob until few remain. Then bob's browser publishes more.
func (s *chatStory) packagesRunLow(t *testing.T) {
	bob := s.bob.owner
	for range 5 {
		if got := s.alice.owner.Ask(t, http.MethodPost, "/api/keypackages/claim", map[string]any{"actor": bob.ID}); got.Status != http.StatusOK {
			t.Fatalf("a claim is answered %d %s", got.Status, got.Body)
		}
	}
	enginetest.Eventually(t, "ten key packages again", func() bool {
		var stats struct{ Available, Claimed int }
		bob.Ask(t, http.MethodGet, "/api/keypackages/stats", nil).Decode(t, &stats)
		return stats.Available == 10 && stats.Claimed == 6
	})
}

// packagesAreReplaced lets another program invite bob by the key package that his browser shows to
// everybody. The browser replaces it after that Welcome, and after a week without one. It can be
// invited by the package before for 30 days more. The clock is that of bob's page.
func (s *chatStory) packagesAreReplaced(t *testing.T) {
	bob := s.bob
	bob.setClock(-31)
	first := bob.shownPackage()
	s.inviteBob(t, first)
	var second string
	enginetest.Eventually(t, "another key package in the place of the one that was used", func() bool {
		second = bob.shownPackage()
		return second != first
	})
	bob.syncChats()
	bob.setClock(-24.1)
	if bob.syncChats(); bob.shownPackage() != second {
		t.Error("a key package is replaced within a week, though no Welcome named it")
	}
	bob.setClock(-23.9)
	if bob.syncChats(); bob.shownPackage() == second {
		t.Error("a key package is shown for more than a week")
	}
	bob.setClock(-1.1)
	bob.syncChats()
	s.inviteBob(t, first) // its Welcome was on its way for 29.9 days
	bob.setClock(-0.9)
	bob.syncChats()
	if slices.Contains(bob.keptPackages(), first) {
		t.Error("a key package that was replaced is kept for more than 30 days")
	}
	bob.setClock(0)
}

// conversationIsReset lets alice's program ask for a reset, as an admin does. Her browser begins
// the next group. It lets all devices in but that of the other program, which shows a key package
// that it has used before. All see the messages of both groups.
func (s *chatStory) conversationIsReset(t *testing.T) {
	s.askReset(t)
	s.bob.awaitReset()
	s.alice.page.Click(t, "#resetter button")
	for _, c := range []tab{s.alice, s.bob} {
		c.awaitGroup(4)
	}
	s.bob.sayInChat("In a new group.")
	for _, c := range []tab{s.alice, s.bob, s.others[1], s.others[2]} {
		c.awaitSaid("Welcome back.", "In a new group.")
	}
	s.alice.sayInChat("To all of it.")
	for _, c := range []tab{s.bob, s.others[1], s.others[2]} {
		c.awaitSaid("Welcome back.", "In a new group.", "To all of it.")
	}
}

// inviteBob lets a program of alice's begin a group with the device that a key package is of, and
// waits until bob's browser has joined.
func (s *chatStory) inviteBob(t *testing.T, content string) {
	t.Helper()
	host := takeSeat(t, s.devices, s.alice.owner, "another program")
	host.begin(t)
	host.commit(t, map[string]any{"add": []string{content}})
	enginetest.Eventually(t, "bob's browser joins", func() (isIn bool) {
		s.bob.inStore(`find("groups", `+strconv.Quote(host.group)+`).then(Boolean)`, &isIn)
		return isIn
	})
}

// setClock sets the clock of a page to so many days from now.
func (c tab) setClock(days float64) {
	c.t.Helper()
	c.page.Run(c.t, fmt.Sprintf(`{ const real = window.realNow ??= Date.now; Date.now = () => real() + 86400_000 * %v }`, days), nil)
}

func (c tab) syncChats() {
	c.t.Helper()
	c.page.Run(c.t, `import("/client/chats.js").then((chats) => chats.sync())`, nil)
}

// inStore runs a method of the store of the page's device.
func (c tab) inStore(call string, value any) {
	c.t.Helper()
	c.page.Run(c.t, `import("/client/store.js").then(({ openStore }) => openStore(`+strconv.Quote(c.owner.ID)+`)).then((store) => store.`+call+`)`, value)
}

// keptPackages returns the key packages that the page's device has the private keys of.
func (c tab) keptPackages() (contents []string) {
	c.t.Helper()
	c.inStore(`list("packages").then((all) => all.map(({ content }) => content))`, &contents)
	return contents
}

// shownPackage returns the one key package of the page's device in the public collection. It reads
// again if the device replaces the key package meanwhile.
func (c tab) shownPackage() string {
	c.t.Helper()
	var shown []string
	enginetest.Eventually(c.t, "everybody sees one key package of the browser", func() bool {
		kept := c.keptPackages()
		shown = slices.DeleteFunc(publicPackages(c.t, c.owner), func(content string) bool { return !slices.Contains(kept, content) })
		return len(shown) == 1
	})
	return shown[0]
}
