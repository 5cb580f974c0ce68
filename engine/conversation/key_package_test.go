package conversation_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// publish publishes n packages for one of alice's devices. Each of them can be claimed once. If
// last is true, it also publishes a package of last resort.
func (s *scene) publish(device string, n int, last bool) (all []user.KeyPackage) {
	s.Helper()
	var packages []conversation.NewPackage
	for range n {
		packages = append(packages, conversation.NewPackage{Device: device, Content: mlstest.NewDevice(aliceID, s.now()).Package})
	}
	if last {
		packages = append(packages, conversation.NewPackage{Device: device, Content: mlstest.NewDevice(aliceID, s.now()).Package, LastResort: true})
	}
	all, err := s.registry.Publish(s.Context(), s.user, packages)
	if err != nil {
		s.Fatal(err)
	}
	return all
}

func (s *scene) stats() conversation.PackageStats {
	s.Helper()
	stats, err := s.registry.PackageStats(s.Context(), s.user)
	if err != nil {
		s.Fatal(err)
	}
	return stats
}

// follow makes alice follow an actor.
func (s *scene) follow(actor vocab.ID) {
	s.Helper()
	err := s.store.Write(s.Context(), s.user, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: actor, Type: user.Following, Status: user.Accepted, Activity: actor + "/f"}, s.now())
	})
	if err != nil {
		s.Fatal(err)
	}
}

// Row 20 of docs/conversations.md, Cases and their tests: many claims at once get different
// packages, until only the package of last resort is left.
func TestRow20APackageIsClaimedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.publish("phone", 8, true)
	s.publish("laptop", 3, false)
	got := make(chan user.KeyPackage, 100)
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() {
			claimed, err := s.registry.Claim(t.Context(), s.user, bobID)
			if err != nil {
				t.Error(err)
			}
			for _, k := range claimed {
				got <- k
			}
		})
	}
	wg.Wait()
	close(got)
	times, last := map[string]int{}, 0
	for k := range got {
		if k.LastResort {
			last++
			continue
		}
		times[string(k.Ref)]++
	}
	for ref, n := range times {
		if n != 1 {
			t.Errorf("package %x was claimed %d times", ref, n)
		}
	}
	if len(times) != 11 || last == 0 {
		t.Errorf("%d packages were claimed, and %d times that of last resort; want 11 and some", len(times), last)
	}
	for range 2 { // one package for several groups, with its mark
		again, err := s.registry.Claim(t.Context(), s.user, bobID)
		if err != nil || len(again) != 1 || !again[0].LastResort || again[0].State != user.PackageAvailable || again[0].Device != "phone" {
			t.Errorf("after the last one the claim is answered %+v, %v; want that of last resort", again, err)
		}
	}
	if n := s.events()["keypackages.low"]; n != 1 {
		t.Errorf("alice was told %d times that few packages are left, want once", n)
	}
}

// Row 20: an actor who has no relationship with the user gets no packages. Others get at most 20 a
// day.
func TestRow20ClaimsAreForActorsWhoKnowTheUserAndAreCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.publish("phone", 40, true)
	_, err := s.registry.Claim(t.Context(), s.user, carolID)
	s.wantRefused("a stranger's claim", err, fault.Forbidden, "claim_refused")
	s.follow(carolID)
	for range 20 {
		if _, err := s.registry.Claim(t.Context(), s.user, carolID); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.registry.Claim(t.Context(), s.user, carolID)
	s.wantRefused("the 21st claim of a day", err, fault.RateLimited, "claim_limit")
	s.later(25 * time.Hour)
	if _, err := s.registry.Claim(t.Context(), s.user, carolID); err != nil {
		t.Errorf("the next day: %v", err)
	}
	block := user.Block{Actor: carolID, Direction: user.Outbound, Activity: "https://us.example/b"}
	if err := s.store.Write(t.Context(), s.user, func(ctx context.Context, tx *user.Tx) error { return tx.Blocks.Add(ctx, block, s.now()) }); err != nil {
		t.Fatal(err)
	}
	_, err = s.registry.Claim(t.Context(), s.user, carolID)
	s.wantRefused("a blocked actor's claim", err, fault.Forbidden, "claim_refused")
}

// The actors of one domain together get at most 40 packages of a user a day.
func TestADomainClaimsSoManyPackagesOfAUserADay(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.publish("phone", 60, true)
	claim := func(actor string) error {
		_, err := s.registry.Claim(t.Context(), s.user, vocab.ID(actor))
		return err
	}
	n := 0
	for _, actor := range []string{"https://a.many.example/1", "https://b.many.example/2", "https://c.many.example/3", carolID, "https://us.example/users/dave"} {
		s.follow(vocab.ID(actor))
		for range 15 {
			if claim(actor) == nil && strings.Contains(actor, "many.example") {
				n++
			}
		}
	}
	if n != 40 {
		t.Errorf("a domain claimed %d packages, want 40", n)
	}
	s.wantRefused("one more", claim("https://a.many.example/1"), fault.RateLimited, "claim_limit")
	for _, actor := range []string{carolID, "https://us.example/users/dave"} {
		if err := claim(actor); err != nil {
			t.Errorf("%s: %v", actor, err)
		}
	}
	s.later(25 * time.Hour)
	if err := claim("https://a.many.example/1"); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

func TestTheUserIsToldOnceThatFewPackagesAreLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.publish("phone", 6, true)
	told := func(want int) {
		t.Helper()
		if n := s.events()["keypackages.low"]; n != want {
			t.Errorf("told %d times, want %d", n, want)
		}
	}
	claim := func() {
		t.Helper()
		if _, err := s.registry.Claim(t.Context(), s.user, bobID); err != nil {
			t.Fatal(err)
		}
	}
	claim()
	told(0)
	for range 3 {
		claim()
	}
	told(1)
	if stats := s.stats(); stats.OneTime != 2 || stats.Claimed != 4 || stats.LastResort != 1 || !stats.NeedsMore {
		t.Errorf("the stats are %+v", stats)
	}
	s.publish("phone", 4, false)
	claim()
	told(1)
	claim()
	told(2)
}

// After a restore a user may have no key package left. When an actor tries to claim one, the user
// gets an event.
func TestTheUserIsToldThatNoPackageIsLeftThoughNoneIsClaimed(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.publish("phone", 6, false)
	dbtest.Run(t, dbtest.DatabaseOf(t, s.store, s.user), `UPDATE mls_key_packages SET state = 'claimed', claimed_by = '', claimed_at = now()`)
	for range 2 {
		_, err := s.registry.Claim(t.Context(), s.user, bobID)
		s.wantRefused("a claim of nothing", err, fault.NotFound, "no_key_package")
	}
	if n := s.events()["keypackages.low"]; n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

// Row 20: an expired package is refused when it is published, claimed or added.
func TestRow20PackagesOfOthersAndExpiredOnesAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	now := time.Now()
	for name, content := range map[string][]byte{
		"another actor's": mlstest.NewDevice(bobID, now).Package, "an expired one": mlstest.NewDeviceUntil(aliceID, now.Add(-48*time.Hour), now.Add(-time.Hour)).Package,
		"a lasting one": mlstest.NewDeviceUntil(aliceID, now, now.Add(100*24*time.Hour)).Package, "noise": []byte("noise"), "a message": s.group.Message(),
	} {
		_, err := s.registry.Publish(t.Context(), s.user, []conversation.NewPackage{{Device: "phone", Content: content}})
		s.wantRefused(name, err, fault.Unprocessable, "bad_key_package")
	}
	twice := conversation.NewPackage{Device: "phone", Content: mlstest.NewDevice(aliceID, now).Package}
	for range 2 {
		if _, err := s.registry.Publish(t.Context(), s.user, []conversation.NewPackage{twice}); err != nil {
			t.Fatal(err)
		}
	}
	if stats := s.stats(); stats.OneTime != 1 {
		t.Errorf("one package published twice counts as %d", stats.OneTime)
	}
	s.later(8 * 24 * time.Hour)
	if _, err := s.registry.Claim(t.Context(), s.user, aliceID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a claim of what is expired: %v", err)
	}
	old := mlstest.NewDeviceUntil(bobID, now.Add(-48*time.Hour), now.Add(-time.Hour))
	add, _ := s.request(s.alice, s.group, mlstest.Change{Add: []*mlstest.Device{old}})
	_, err := s.registry.Commit(t.Context(), s.at, add)
	s.wantRefused("a commit that adds an expired package", err, fault.Invalid, "bad_mls_message")
	many := make([]conversation.NewPackage, 101)
	for i := range many {
		many[i] = conversation.NewPackage{Device: "phone", Content: mlstest.NewDevice(aliceID, s.now()).Package}
	}
	_, err = s.registry.Publish(t.Context(), s.user, many)
	s.wantRefused("101 packages", err, fault.Unprocessable, "too_many_key_packages")
}

// Row 21 of docs/conversations.md, Cases and their tests: a device fetches its Welcome and crashes
// before it confirms the Welcome. It fetches the Welcome again after the lease.
func TestRow21AWelcomeIsLeasedUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	second := mlstest.NewDevice(aliceID, time.Now())
	if _, err := s.registry.Publish(t.Context(), s.user, []conversation.NewPackage{{Device: "laptop", Content: second.Package}}); err != nil {
		t.Fatal(err)
	}
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{second, s.bob}})
	welcomes := func(device string) []user.Welcome {
		t.Helper()
		all, err := s.registry.Welcomes(t.Context(), s.user, device)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := welcomes("phone"); len(all) != 0 {
		t.Errorf("another device has %d welcomes", len(all))
	}
	first := welcomes("laptop")
	if len(first) != 1 || first[0].URI == "" || first[0].Recipient != aliceID {
		t.Fatalf("the laptop has %+v", first)
	}
	if all := welcomes(""); len(all) != 0 {
		t.Errorf("%d welcomes are handed out twice", len(all))
	}
	s.later(11 * time.Minute)
	if all := welcomes("laptop"); len(all) != 1 || all[0].ID != first[0].ID {
		t.Errorf("after its lease the laptop has %+v", all)
	}
	for range 2 {
		if err := s.registry.ConfirmWelcome(t.Context(), s.user, first[0].ID, ""); err != nil {
			t.Errorf("confirm: %v", err)
		}
	}
	var bobs uuid.UUID
	if err := dbtest.SQL(t, s.store, s.user).QueryRow(`SELECT id FROM mls_welcomes WHERE recipient_uri = $1`, bobID).Scan(&bobs); err != nil {
		t.Fatal(err)
	}
	s.wantRefused("bob's Welcome", s.registry.ConfirmWelcome(t.Context(), s.user, bobs, ""), fault.Forbidden, "not_recipient")
	s.wantRefused("bob's Welcome with a group", s.registry.ConfirmWelcome(t.Context(), s.user, bobs, s.group.ID), fault.Forbidden, "not_recipient")
	s.wantRefused("no Welcome", s.registry.ConfirmWelcome(t.Context(), s.user, uuid.New(), ""), fault.NotFound, "no_welcome")
	s.later(time.Hour)
	if all := welcomes("laptop"); len(all) != 0 {
		t.Errorf("after it was confirmed the laptop has %d welcomes", len(all))
	}
	if got := s.events()["conversation.welcome"]; got != 1 {
		t.Errorf("alice was told of %d welcomes, want 1", got)
	}
}

// A Welcome that was never handed out comes before those that devices got and did not confirm.
func TestRow21WelcomesThatNobodyConfirmsHideNoOther(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var devices []*mlstest.Device
	var packages []conversation.NewPackage
	for range 9 { // one more than the server hands out at once
		d := mlstest.NewDevice(aliceID, time.Now())
		devices, packages = append(devices, d), append(packages, conversation.NewPackage{Device: "laptop", Content: d.Package})
	}
	if _, err := s.registry.Publish(t.Context(), s.user, packages); err != nil {
		t.Fatal(err)
	}
	s.commit(s.alice, mlstest.Change{Add: devices})
	seen := map[uuid.UUID]bool{}
	for range 2 {
		all, err := s.registry.Welcomes(t.Context(), s.user, "laptop")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			seen[w.ID] = true
		}
		s.later(11 * time.Minute) // nobody confirmed them in time
	}
	if len(seen) != len(devices) {
		t.Errorf("two requests were answered with %d Welcomes, want %d", len(seen), len(devices))
	}
}

// Row 20: a revoked package invalidates the Welcome that waits for it.
func TestRow20ARevokedPackageTakesItsWelcomesAlong(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	second := mlstest.NewDevice(aliceID, time.Now())
	published, err := s.registry.Publish(t.Context(), s.user, []conversation.NewPackage{{Device: "laptop", Content: second.Package}})
	if err != nil {
		t.Fatal(err)
	}
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{second}})
	waiting, err := s.registry.Welcomes(t.Context(), s.user, "")
	if err != nil || len(waiting) != 1 {
		t.Fatal(waiting, err)
	}
	if err := s.registry.Revoke(t.Context(), s.user, published[0].ID); err != nil {
		t.Fatal(err)
	}
	s.later(time.Hour)
	if waiting, err := s.registry.Welcomes(t.Context(), s.user, ""); err != nil || len(waiting) != 0 {
		t.Errorf("%d welcomes wait, %v", len(waiting), err)
	}
	err = s.registry.ConfirmWelcome(t.Context(), s.user, waiting[0].ID, "")
	s.wantRefused("its confirmation", err, fault.Gone, "welcome_invalid")
	err = s.registry.Revoke(t.Context(), s.user, published[0].ID)
	s.wantRefused("to revoke it again", err, fault.NotFound, "no_key_package")
	again, _ := s.request(s.alice, s.group, mlstest.Change{Remove: []*mlstest.Device{second}, Add: []*mlstest.Device{second}})
	_, err = s.registry.Commit(t.Context(), s.at, again)
	s.wantRefused("its second use", err, fault.Unprocessable, "key_package_used")
}
